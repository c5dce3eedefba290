"""The answers to the queries of docs/analytics.md, from the lines of the logs alone."""

import json
from collections import defaultdict
from datetime import datetime, timedelta


def micros(text):
    return (datetime.fromisoformat(text) - datetime.fromisoformat("1970-01-01T00:00:00Z")) // timedelta(microseconds=1)


def answers(paths):
    failures, days = defaultdict(lambda: [0, 0]), defaultdict(lambda: [0, 0])
    unresolved, spans, asked = set(), {}, set()
    for path in paths:
        configured, models, proposed, response_of, ends, refused, usage = None, {}, {}, {}, {}, set(), {}
        for event in map(json.loads, path.read_bytes().split(b"\n")[:-1]):
            log, kind, data, time = event["log"], event["type"], event["data"], event["time"]
            if time and kind not in ("observation.recorded", "note.added"):
                least, most = spans.get(log, (micros(time), micros(time)))
                spans[log] = min(least, micros(time)), max(most, micros(time))
            configured = data.get("model", configured) if kind == "config.set" else configured
            if kind == "model.response":
                models[data["response"]] = data.get("model") or models.get(data["response"])
                if "usage" in data and "copy" not in event:
                    for at, name in enumerate(("input", "output")):
                        new, key = data["usage"].get(name), (data["response"], name)
                        days[time and time[:10]][at] += (new or 0) - (usage.get(key) or 0)
                        usage[key] = new
            elif kind == "message.added":
                calls = [part["action"] for part in data["parts"] if part["type"] == "action"]
                response_of.update({call: data.get("response") for call in calls if call not in response_of})
            elif kind == "action.proposed" and "copy" not in event:
                proposed.setdefault(data["action"], configured)
            elif kind == "action.ended" and data["applied"] != "unknown":
                ends.setdefault(data["action"], data["outcome"])
            elif kind == "approval.ended" and data["outcome"] in ("denied", "expired", "withdrawn"):
                refused.add(data.get("action"))
            asked.update([log] if kind in ("approval.requested", "approval.ended") else [])
        for action, model in proposed.items():
            if ends.get(action) in ("succeeded", "failed"):
                model = models.get(response_of.get(action)) or model
                failures[model][0] += ends[action] == "failed"
                failures[model][1] += 1
            elif action not in ends and action not in refused:
                unresolved.add((log, action))
    longest = sorted(((b - a, log) for log, (a, b) in spans.items()), key=lambda s: (-s[0], s[1]))[:5]
    return {
        "failures": {(model, *counts) for model, counts in failures.items()},
        "unresolved": unresolved,
        "tokens": {(day, *counts) for day, counts in days.items()},
        "longest": {(log, span) for span, log in longest},
        "asked": {(log,) for log in asked},
    }
