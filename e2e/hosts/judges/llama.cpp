// Reads schemas, one a line, and says of each on a line of its own whether llama.cpp makes
// a grammar of it: "ok", or what is wrong. Each is tried in a process of its own, since
// some end it.
#include "json-schema-to-grammar.h"
#include "llama-grammar.h"
#include "llama-impl.h"
#include "llama-vocab.h"

#include <nlohmann/json.hpp>

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>
#include <sys/wait.h>
#include <unistd.h>

// What those files use of others, so that the others need not be built. What a model
// is needed for is never called.
std::string string_repeat(const std::string & s, size_t n) {
    std::string out;
    while (n--) out += s;
    return out;
}

std::string string_join(const std::vector<std::string> & parts, const std::string & between) {
    std::string out;
    for (size_t i = 0; i < parts.size(); i++) out += (i ? between : "") + parts[i];
    return out;
}

std::vector<std::string> string_split(const std::string & s, const std::string & by) {
    std::vector<std::string> out;
    size_t from = 0;
    for (size_t at; (at = s.find(by, from)) != std::string::npos; from = at + by.size()) out.push_back(s.substr(from, at - from));
    out.push_back(s.substr(from));
    return out;
}

std::string string_format(const char * format, ...) {
    char text[4096];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return text;
}

void llama_log_internal(ggml_log_level, const char *, ...) {}
void ggml_abort(const char *, int, const char *, ...) { abort(); }
ggml_backend_buffer_type_t ggml_backend_cpu_buffer_type(void) { return nullptr; }
bool llama_vocab::is_eog(llama_token) const { abort(); }
const std::string & llama_vocab::token_to_piece(llama_token) const { abort(); }
std::vector<llama_token> llama_vocab::tokenize(const std::string &, bool, bool) const { abort(); }
int32_t llama_vocab::tokenize(const char *, int32_t, llama_token *, int32_t, bool, bool) const { abort(); }

static std::string judge(const std::string & line) {
    try {
        auto grammar = json_schema_to_grammar(nlohmann::ordered_json::parse(line));
        llama_grammar_parser parser;
        if (!parser.parse(grammar.c_str())) return "the grammar cannot be parsed";
        if (parser.symbol_ids.find("root") == parser.symbol_ids.end()) return "the grammar has no root";
        return "ok";
    } catch (const std::exception & e) {
        std::string why = e.what();
        for (auto & c : why) if (c == '\n') c = ' ';
        return why;
    }
}

int main() {
    std::string line;
    while (std::getline(std::cin, line)) {
        int ends[2];
        if (pipe(ends)) return 1;
        pid_t child = fork();
        if (child == 0) {
            std::string said = judge(line);
            _exit(write(ends[1], said.data(), said.size()) < 0);
        }
        close(ends[1]);
        std::string said;
        char buffer[4096];
        for (ssize_t n; (n = read(ends[0], buffer, sizeof buffer)) > 0;) said.append(buffer, n);
        close(ends[0]);
        int status = 0;
        waitpid(child, &status, 0);
        if (!WIFEXITED(status) || said.empty()) said = "it crashes";
        std::cout << said << "\n";
    }
}
