package inspector

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"mime"
	"net/http"
	"path"
	"regexp"
	"strings"
)

//go:embed web
var web embed.FS

// scripts are the modules of the page in the order in which they are one script: app.js, which runs, is the
// last one. No two have the same name at their top level.
var scripts = []string{"vendor.js", "program.js", "pages.js", "json.js", "looks.js", "form.js", "markdown.js", "links.js", "check.js", "view.js", "tasks.js", "replay.js", "call.js", "app.js"}

// assets returns the files of the page by their names: the modules are one script, so that the page makes
// few requests.
func assets() map[string][]byte {
	files := map[string][]byte{}
	read := func(name string) []byte {
		text, err := web.ReadFile("web/" + name)
		if err != nil {
			panic(err) // the folder is part of the program
		}
		return slim(name, text)
	}
	for _, name := range []string{"index.html", "style.css", "LICENSE-preact", "LICENSE-htm"} {
		files[name] = read(name)
	}
	for _, name := range scripts {
		files["app.js"] = append(files["app.js"], read(name)...)
	}
	return files
}

// Page serves the page and its files, which shows views in frames of the origin frames.
// They have no secrets, and their addresses change with their content.
func Page(frames string) http.Handler {
	files, hash := assets(), sha256.New()
	for _, name := range []string{"index.html", "style.css", "app.js"} {
		hash.Write(files[name])
	}
	base := "/web/" + hex.EncodeToString(hash.Sum(nil)[:6]) + "/"
	shell := strings.NewReplacer("/web/", base, "$frames", frames).Replace(string(files["index.html"]))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/" {
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			_, _ = w.Write([]byte(shell))
			return
		}
		name, ok := strings.CutPrefix(r.URL.Path, base)
		text := files[name]
		if !ok || text == nil {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", mime.TypeByExtension(path.Ext(name)))
		w.Header().Set("Cache-Control", "max-age=31536000, immutable")
		_, _ = w.Write(text)
	})
}

// remark is a comment at the end of a line of a script.
var remark = regexp.MustCompile("\\s+// [^'\"`]*\\n$")

// tight takes spaces out of a style sheet and out of a script that have no meaning: no text of the page has them.
var tight, tightScript = strings.NewReplacer("; ", ";", " { ", "{", " }", "}", ": ", ":", ", ", ",", " > ", ">"),
	strings.NewReplacer(" => ", "=>", " && ", "&&", " || ", "||", " ?? ", "??", " === ", "===", " !== ", "!==")

// slim returns one of our files without its comments, its imports and its indentation: only html templates
// have lines of their own in it, where neither counts.
func slim(name string, text []byte) []byte {
	script := path.Ext(name) == ".js"
	if name == "vendor.js" || !script && path.Ext(name) != ".css" { // which has notices of its authors
		return text
	}
	var out []byte
	for line := range bytes.Lines(text) {
		if line = bytes.TrimLeft(line, " "); script {
			line = []byte(tightScript.Replace(string(remark.ReplaceAll(line, []byte("\n")))))
		} else {
			line = []byte(tight.Replace(string(line)))
		}
		if !bytes.HasPrefix(line, []byte("//")) && !(script && bytes.HasPrefix(line, []byte("import "))) {
			out = append(out, line...)
		}
	}
	return out
}
