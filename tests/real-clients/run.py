#!/usr/bin/env python3
"""Moves genuine sessions with palog, and asks the real clients what they make of them.

  run.py              all cells; writes results.json
  run.py --short      the cells that are marked so; results.json must not change
  run.py --digests    no client: what palog writes must be what results.json says
  run.py --required   each member that a client needs, left out one by one, must turn a good cell red

The clients are installed with npm, at the versions in `PINNED`, into $PALOG_CLIENTS (default: ~/.cache/palog/clients). Claude
Code's is proprietary: nothing of it is kept here. They run in a network namespace that has loopback only, against models.py.
"""
import argparse
import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import tomllib

LANE = pathlib.Path(__file__).resolve().parent
ROOT = LANE.parent.parent
SOURCES = ROOT / "conformance-fixtures/sources"
PINNED = {"claude-code": "@anthropic-ai/claude-code@2.1.197", "codex": "@openai/codex@0.171.0"}
NOTE = "[No result. This is a note of the program that moved this session"


def palog(*args):
    program = os.environ.get("PALOG", str(ROOT / "target/debug/palog"))
    run = subprocess.run([program, *args], capture_output=True, text=True)
    if run.returncode not in (0, 1) or not run.stdout:
        sys.exit(f"palog {' '.join(args)}: {run.returncode}\n{run.stderr}")
    return json.loads(run.stdout)


def clients():
    place = pathlib.Path(os.environ.get("PALOG_CLIENTS", os.path.expanduser("~/.cache/palog/clients")))
    for name, package in PINNED.items():
        folder = place / name
        version = package.rsplit("@", 1)[1]
        manifest = folder / "node_modules" / package.rsplit("@", 1)[0] / "package.json"
        if manifest.is_file() and json.loads(manifest.read_text())["version"] == version:
            continue
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "package.json").exists() or (folder / "package.json").write_text("{}\n")
        subprocess.run(["npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", package], cwd=folder, check=True, stdout=subprocess.DEVNULL)
    return place


def digest(data):
    return hashlib.sha256(data).hexdigest()


def move(cell, home, logs):
    """Moves the session of a cell into `home`."""
    source = str(SOURCES / cell["from"])
    args = ["migrate", source, "--to", cell["to"], "--into", str(home), "--logs", str(logs), "--format", "json", "--lossy"]
    if cell.get("anew"):
        # A place that is taken: the session gets an id of its own, and is written anew.
        first = palog(*args[:-1], "--dry-run")
        taken = pathlib.Path(first["path"])
        taken.parent.mkdir(parents=True)
        taken.touch()
    moved = palog(*args)
    assert moved["written"], moved
    written = pathlib.Path(moved["path"]).read_bytes()
    if cell.get("anew"):
        taken.unlink()
    report = moved["report"]
    identical = any(written == file.read_bytes() for file in files(source)) if report["identical"] else False
    assert identical == report["identical"], cell["name"]
    before, after = (palog("recover", str(path), "--format", "json")["verdict"] for path in (source, home))
    return {
        "path": os.path.relpath(moved["path"], home), "session": report["session"], "identical": identical, "sha256": digest(written),
        "losses": {loss["field"]: loss["count"] for loss in report["losses"]},
        "verdict": {"before": before, "after": after},
    }


def files(source):
    source = pathlib.Path(source)
    return sorted(source.rglob("*.jsonl")) if source.is_dir() else [source]


def flat(messages):
    """A request, as the texts, calls, results and pictures in it."""
    out = {"texts": [], "calls": [], "results": {}, "pictures": 0, "errors": []}

    def content(parts):
        texts = []
        for part in [{"type": "text", "text": parts}] if isinstance(parts, str) else parts:
            if part["type"] in ("text", "input_text", "output_text"):
                texts.append(part["text"])
            elif part["type"] in ("image", "input_image"):
                out["pictures"] += 1
        return texts

    for item in messages:
        kind = item.get("type", "message")
        if kind in ("function_call", "custom_tool_call", "local_shell_call"):
            args = item.get("arguments", item.get("input", item.get("action")))
            try:
                args = json.loads(args) if kind == "function_call" else args
            except ValueError:
                pass
            out["calls"].append({"id": item.get("call_id"), "name": item.get("name"), "args": args})
        elif kind in ("function_call_output", "custom_tool_call_output"):
            out["results"][item.get("call_id")] = content(item.get("output") or [])
        elif kind == "message" and item["role"] in ("user", "assistant"):
            blocks = item["content"]
            for block in [{"type": "text", "text": blocks}] if isinstance(blocks, str) else blocks:
                if block["type"] == "tool_use":
                    out["calls"].append({"id": block.get("id"), "name": block["name"], "args": block["input"]})
                elif block["type"] == "tool_result":
                    out["results"][block.get("tool_use_id")] = content(block.get("content", ""))
                    if block.get("is_error"):
                        out["errors"].append(block.get("tool_use_id"))
                else:
                    out["texts"] += content([block])
    return out


CLIENTS_OWN = ("[client ", "<environment_context>", "<permissions", "<system-reminder>", "<user_instructions>")


def expected(cell):
    """What has to arrive: taken from what the first client itself sent, or wrote."""
    source = SOURCES / cell["from"]
    if cell.get("expect") == "file":
        calls = {"calls": [], "results": {}, "texts": [], "pictures": 0, "errors": []}
        lines = [json.loads(line) for file in files(source) for line in file.read_text().splitlines() if '"type"' in line]
        messages = [line["payload"] for line in lines if line["type"] == "response_item"]
        messages += [line["message"] for line in lines if line["type"] in ("user", "assistant")]
        return dict(calls, **flat(messages)) if messages else calls
    folder = SOURCES / "/".join(cell["from"].split("/")[:2])
    requests = [json.loads(line) for line in (folder / "requests.jsonl").read_text().splitlines()]
    asked = [request.get("messages") or request.get("input") for request in requests]
    asked = [messages for messages in asked if messages]
    main = asked[0][0] if "messages" in requests[0] else None
    # Subagents ask as well; those of the session begin as its first request does.
    own = [messages for messages in asked if main is None or "compact" in cell["from"] or messages[0] == main]
    return flat(own[-1])


def judge(cell, want, seen):
    """What is wrong with what a client sent."""
    if not seen.get("request"):
        return ["no request was sent: " + seen.get("why", "")]
    got, wrong = flat(seen["request"]), []
    args = lambda call: {"input": call["args"]} if cell["to"] == "claude-code" and not isinstance(call["args"], dict) else call["args"]
    wanted = [dict(call, args=args(call)) for call in want["calls"]]
    # The answer to the last request may hold calls that the request does not.
    if got["calls"][: len(wanted)] != wanted:
        wrong.append(f"calls: {got['calls']} instead of {wanted}")
    for call in got["calls"]:
        if call["id"] not in got["results"]:
            wrong.append(f"{call['id']} has no result")
    for call in wanted:
        told, was = got["results"].get(call["id"]), want["results"].get(call["id"])
        if was is None:
            open_call = told and told[0].startswith(NOTE) and (cell["to"] == "codex" or call["id"] in got["errors"])
            if not open_call:
                wrong.append(f"{call['id']} is open, and the model is told {told}")
        elif told != was:
            wrong.append(f"{call['id']}: {told} instead of {was}")
    texts = iter(got["texts"])
    for text in want["texts"]:
        if text.lstrip().startswith(CLIENTS_OWN):
            continue
        if not any(other.strip() == text.strip() for other in texts):
            wrong.append(f"missing, or not in its place: {text[:80]!r}")
    if got["pictures"] < want["pictures"]:
        wrong.append(f"{got['pictures']} of {want['pictures']} pictures")
    return wrong


def words(cell):
    """The last words of the user and of the model, by which the client's screen is known."""
    prompts, answers = [], []
    for file in files(str(SOURCES / cell["from"])):
        for line in file.read_text().splitlines():
            line = json.loads(line)
            message = line.get("payload") if line.get("type") == "response_item" else line.get("message")
            if not isinstance(message, dict) or line.get("isMeta") or line.get("isCompactSummary") or message.get("model") == "<synthetic>":
                continue
            said = answers if message.get("role") == "assistant" else prompts if message.get("role") == "user" else []
            said += [text for text in flat([message])["texts"] if not text.lstrip().startswith(("<", "[", "#"))]
    return prompts[-1], answers[-1] if answers else ""


# What the vendors' clients need, by the place in a record.
REQUIRED = {
    "codex": ["timestamp", "type", "payload", "ordinal", "payload.id", "payload.timestamp", "payload.cwd", "payload.originator", "payload.cli_version", "payload.call_id", "payload.name", "payload.arguments", "payload.output", "payload.role", "payload.content"],
    "claude-code": ["type", "uuid", "parentUuid", "timestamp", "message.id", "message.model", "message.content", "message.content.0.id", "message.content.0.tool_use_id", "message.content.0.type"],
}


def without(line, place):
    """A record without the member at `place`."""
    record = json.loads(line)
    at, *rest = place.split(".")
    holder = record
    for step in rest:
        holder = holder[int(at)] if isinstance(holder, list) and at.isdigit() and len(holder) > int(at) else holder.get(at) if isinstance(holder, dict) else None
        at = step
    if isinstance(holder, dict):
        holder.pop(at, None)
    return json.dumps(record, ensure_ascii=False)


def required(cells, work):
    """Cells with one member left out of every record; each of them has to be red."""
    made = []
    for good in [next(cell for cell in cells if cell["to"] == to and not cell["moved"]["identical"] and "parallel" in cell["shows"]) for to in REQUIRED]:
        for place in REQUIRED[good["to"]]:
            cell = dict(good, name=f"{good['name']}-without-{place}", without=place, seconds=20)
            home = work / "homes" / cell["name"]
            shutil.copytree(work / "homes" / good["name"], home)
            file = home / good["moved"]["path"]
            file.write_text("".join(without(line, place) + "\n" for line in file.read_text().splitlines()))
            made.append(cell)
    return made


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--short", action="store_true")
    parser.add_argument("--digests", action="store_true")
    parser.add_argument("--required", action="store_true")
    parser.add_argument("--only")
    args = parser.parse_args()
    if "PALOG" not in os.environ:
        subprocess.run(["cargo", "build", "-q", "-p", "palog-cli", "--all-features"], cwd=ROOT, check=True)
    cells = tomllib.loads((LANE / "cells.toml").read_text())["cell"]
    for cell in cells:
        cell["name"] = f"{cell['from'].replace('/', '-')}-to-{cell['to']}{'-anew' if cell.get('anew') else ''}"
    if args.short:
        cells = [cell for cell in cells if cell.get("short")]
    if args.only:
        cells = [cell for cell in cells if args.only in cell["name"]]
    recorded = json.loads((LANE / "results.json").read_text())["cells"] if (LANE / "results.json").exists() else {}
    wrong = []
    with tempfile.TemporaryDirectory(prefix="palog-lane-") as work:
        work = pathlib.Path(work)
        for cell in cells:
            home = work / "homes" / cell["name"]
            home.mkdir(parents=True)
            cell["moved"] = move(cell, home, work / "logs" / cell["name"])
            cell["session"] = cell["moved"]["session"]
            cell["want"] = expected(cell)
            cell["prompt"], cell["last"] = words(cell)
        if args.required:
            cells = required(cells, work)
        results = {}
        if args.digests:
            seen = {}
        else:
            (work / "cells.json").write_text(json.dumps([{k: v for k, v in c.items() if k != "moved"} for c in cells]))
            subprocess.run([str(LANE / "ns.sh"), str(work), str(clients()), "python3", "/mnt/lane/clients.py"], check=True)
            seen = json.loads((work / "seen.json").read_text())
        for cell in cells:
            name, moved = cell["name"], cell["moved"]
            result = {k: moved[k] for k in ("session", "identical", "sha256", "verdict", "losses")}
            old = recorded.get(name)
            if args.digests:
                if old is None or any(old[key] != result[key] for key in result):
                    wrong.append(f"{name}: what is written is not what the clients were asked about")
                continue
            one = seen[name]
            faults = judge(cell, cell["want"], one)
            # A client need not list its own bytes: some of its sessions are not for the list.
            facts = ("opened", "resumed") if moved["identical"] else ("listed", "opened", "resumed")
            faults += [f"not {fact}" for fact in facts if one.get(fact) is False]
            if args.required:
                print(f"{'ok ' if faults else 'BAD'} {one['seconds']:5.1f} s  {name}: {(faults or ['nothing is wrong'])[0][:100]}", flush=True)
                wrong += [] if faults else [f"{name}: it is left out, and nothing is wrong"]
                continue
            got = flat(one["request"] or [])
            result = {"shows": cell["shows"], **result, "listed": one.get("listed"), "opened": one.get("opened"), "resumed": one.get("resumed")}
            result["request"] = {
                "sha256": digest(json.dumps(one["request"], sort_keys=True).encode()), "calls": len(got["calls"]),
                "results": len(got["results"]), "notes": sum(bool(r and r[0].startswith(NOTE)) for r in got["results"].values()),
                "pictures": got["pictures"],
            }
            results[name] = result
            print(f"{'ok ' if not faults else 'BAD'} {one['seconds']:5.1f} s  {name}  ({cell['shows']})", flush=True)
            wrong += [f"{name}: {fault}" for fault in faults]
            if args.short and not faults and old != result:
                wrong.append(f"{name}: not what results.json says: {result}")
    if not (args.short or args.digests or args.only or args.required) and not wrong:
        document = {"clients": PINNED, "cells": results}
        (LANE / "results.json").write_text(json.dumps(document, indent=1, sort_keys=True, ensure_ascii=False) + "\n")
    for line in wrong:
        print(line[:2000], file=sys.stderr)
    print(f"{len(cells)} cells, {len(wrong)} faults")
    return 1 if wrong or not cells else 0


if __name__ == "__main__":
    sys.exit(main())
