"""The rules of the draft A2A Conformance Test Specification: what a value must be like."""

import json
import re

KINDS = {"string": str, "object": dict, "array": list, "boolean": bool, "number": (int, float), "integer": int,
         "null": type(None)}
RULES = {
    "type": lambda found, kind: isinstance(found, KINDS[kind]),
    "exists": lambda found, wanted: (found is not None) == wanted,
    "absent": lambda found, wanted: (found is None) == wanted,
    "matches": lambda found, pattern: isinstance(found, str) and re.search(pattern, found),
    "starts_with": lambda found, text: isinstance(found, str) and found.startswith(text),
    "contains": lambda found, item: item in (found or ""),
    "count": lambda found, number: len(found or []) == number,
    "count_gte": lambda found, number: len(found or []) >= number,
    "count_lte": lambda found, number: len(found or []) <= number,
}
SEVERAL = {"one_of", "any_of", "all_of", "items"}


class Mismatch(Exception):
    pass


def match(found, wanted, place="body"):
    """Raises what is not as wanted."""
    if isinstance(wanted, dict):
        is_rule = set(wanted) <= set(RULES) | SEVERAL
        for name, inner in wanted.items():
            if name in SEVERAL and (is_rule or name != "items"):
                several(name, found, inner, place)
            elif is_rule:
                if not RULES[name](found, inner):
                    raise Mismatch(f"{place}: {name} {inner!r}, {json.dumps(found)[:160]} found")
            else:
                match(found.get(name) if isinstance(found, dict) else None, inner, f"{place}.{name}")
    elif isinstance(wanted, list):
        for index, inner in enumerate(wanted):
            match(found[index] if isinstance(found, list) and index < len(found) else None, inner, f"{place}[{index}]")
    elif found != wanted:
        raise Mismatch(f"{place}: {wanted!r} wanted, {json.dumps(found)[:160]} found")


def several(name, found, wanted, place):
    if name == "all_of":
        for inner in wanted:
            match(found, inner, place)
    elif name == "items":
        for index, value in enumerate(found or []) if isinstance(wanted, dict) else ():
            match(value, wanted, f"{place}[{index}]")
        if isinstance(wanted, list):
            match(found, wanted, place)
    else:
        reasons = []
        for inner in wanted:
            try:
                return match(found, inner, place)
            except Mismatch as reason:
                reasons.append(str(reason))
        raise Mismatch(f"{place}: none of {len(wanted)}: {reasons[0]}")
