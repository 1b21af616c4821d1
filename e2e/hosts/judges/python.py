"""Reads schemas, one a line, and writes for each a line of JSON: what every judge refuses.

re compiles the patterns, as OpenAI does; llguidance makes a grammar; anthropic turns the
schema into that of a strict tool; google-genai reads it as the parameters of a function.
The first three say why, or "". The last lists the keywords that it does not have.
"""

import copy
import json
import re
import sys

import llguidance
from anthropic import transform_schema
from google.genai import types
from pydantic import ValidationError


def patterns(value):
    if isinstance(value, dict):
        if isinstance(value.get("pattern"), str):
            yield value["pattern"]
        for part in value.values():
            yield from patterns(part)
    elif isinstance(value, list):
        for part in value:
            yield from patterns(part)


def judge_re(schema):
    for pattern in patterns(schema):
        try:
            re.compile(pattern)
        except re.error as e:
            return f"{pattern}: {e}"
    return ""


def judge_llguidance(schema):
    grammar = llguidance.LLMatcher.grammar_from_json_schema(json.dumps(schema))
    return llguidance.LLMatcher.validate_grammar(grammar)


def judge_anthropic(schema):
    try:
        transform_schema(copy.deepcopy(schema))
    except Exception as e:
        return str(e)
    return ""


def judge_google(schema):
    try:
        types.Schema.model_validate(copy.deepcopy(schema))
    except ValidationError as e:
        return sorted({str(one["loc"][-1]) for one in e.errors()})
    except AttributeError:  # it asks a list for what a text has
        return ["type"]
    return []


for line in sys.stdin:
    schema = json.loads(line)
    print(json.dumps({
        "re": judge_re(schema),
        "llguidance": judge_llguidance(schema),
        "anthropic": judge_anthropic(schema),
        "google-genai": judge_google(schema),
    }))
