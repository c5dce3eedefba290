"""Drives the real clients inside the namespace: what do they list, open and send of a session that was moved to them?"""
import glob
import json
import os
import pty
import queue
import re
import select
import shutil
import signal
import subprocess
import threading
import time

from models import ANSWER, Anthropic, Model, Responses

CWD = "/tmp/proj/demo"
HOME = "/home/demo"


def inside():
    """Nothing runs outside of a namespace that has loopback only."""
    links = subprocess.run(["ip", "-o", "link"], capture_output=True, text=True, check=True).stdout.strip().splitlines()
    assert os.environ.get("PALOG_LANE") == "inside" and all(": lo" in link for link in links), "run through ns.sh"


def screen(args, env, wanted, seconds):
    """Runs a client on a terminal until all of `wanted` was on it. Returns what was not."""
    pid, fd = pty.fork()
    if pid == 0:
        os.chdir(CWD)
        os.execve(args[0], args, env)
    seen, left, end = "", list(wanted), time.time() + seconds
    squeeze = lambda text: re.sub(r"[^0-9A-Za-z]", "", re.sub(r"\x1b(\[[0-9;?<>=]*[A-Za-z]|\][^\x07\x1b]*(\x07|\x1b\\)|.)", "", text))
    while left and time.time() < end:
        if not select.select([fd], [], [], 0.2)[0]:
            continue
        try:
            seen += os.read(fd, 1 << 16).decode("utf8", "replace")
        except OSError:
            break
        text = squeeze(seen)
        left = [want for want in left if squeeze(want) not in text]
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    os.close(fd)
    return left


class ClaudeCode:
    name = "claude-code"

    def __init__(self):
        self.binary = "/mnt/clients/claude-code/node_modules/@anthropic-ai/claude-code-linux-x64/claude"
        self.model = Model(Anthropic)

    def prepare(self, home):
        state = {
            "hasCompletedOnboarding": True, "theme": "dark", "numStartups": 5, "lastOnboardingVersion": "9.9.9",
            "lastReleaseNotesSeen": "9.9.9", "bypassPermissionsModeAccepted": True,
            "customApiKeyResponses": {"approved": ["dummy"], "rejected": []},
            "projects": {CWD: {"hasTrustDialogAccepted": True, "hasCompletedProjectOnboarding": True, "allowedTools": []}},
        }
        with open(home + "/.claude.json", "w") as file:
            json.dump(state, file)
        self.env = {
            "PATH": os.environ["PATH"], "HOME": HOME, "CLAUDE_CONFIG_DIR": home, "LANG": "C.UTF-8", "TZ": "UTC",
            "ANTHROPIC_BASE_URL": f"http://127.0.0.1:{self.model.port}", "ANTHROPIC_API_KEY": "dummy",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_AUTOUPDATER": "1", "DISABLE_TELEMETRY": "1",
            "DISABLE_ERROR_REPORTING": "1", "IS_SANDBOX": "1", "TERM": "xterm-256color", "SHELL": "/bin/bash",
            "USER": "demo", "LOGNAME": "demo", "COLUMNS": "200", "LINES": "60",
        }

    def probe(self, cell, home):
        self.prepare(home)
        session = cell["session"]
        out = {}
        if cell["prompt"] and "without" not in cell:
            out["listed"] = not screen([self.binary, "--resume"], self.env, [cell["prompt"][:24]], 25)
        if cell["last"] and "without" not in cell:
            out["opened"] = not screen([self.binary, "--resume", session], self.env, [cell["last"][:24]], 25)
        self.model.take()
        run = subprocess.run(
            [self.binary, "-p", "PROBE", "--resume", session, "--output-format", "json"],
            cwd=CWD, env=self.env, input="", capture_output=True, text=True, timeout=cell.get("seconds", 90),
        )
        asked = [a["body"] for a in self.model.take() if a["body"].get("tools")]
        try:
            result = json.loads(run.stdout)
        except ValueError:
            result = {}
        out["resumed"] = run.returncode == 0 and result.get("session_id") == session and result.get("result") == ANSWER
        if not out["resumed"]:
            out["why"] = (run.stderr or run.stdout)[:400]
        out["request"] = self.own(asked[0]["messages"]) if asked else None
        return out

    def own(self, messages):
        """The messages without what the client puts in at each start, and without the prompt of the probe."""
        kept = []
        for message in messages:
            content = message["content"]
            if message["role"] == "system":
                continue
            if isinstance(content, str):
                content = [{"type": "text", "text": content}]
            blocks = [{k: v for k, v in block.items() if k != "cache_control"} for block in content]
            client = lambda b: b["type"] == "text" and (b["text"].lstrip().startswith("<system-reminder>") or b["text"] == "PROBE")
            blocks = [block for block in blocks if not client(block)]
            if blocks:
                kept.append({"role": message["role"], "content": blocks})
        return kept


class Codex:
    name = "codex"

    def __init__(self):
        self.binary = glob.glob("/mnt/clients/codex/node_modules/@openai/codex-linux-x64/vendor/*/bin/codex")[0]
        self.model = Model(Responses)

    def prepare(self, home):
        model = {
            "slug": "mock-model", "display_name": "Mock", "description": "mock", "default_reasoning_level": "medium",
            "supported_reasoning_levels": [{"effort": "medium", "description": "m"}], "shell_type": "unified_exec",
            "visibility": "list", "supported_in_api": True, "priority": 1, "base_instructions": "You are a mock.",
            "supports_reasoning_summaries": True, "default_reasoning_summary": "auto", "support_verbosity": False,
            "apply_patch_tool_type": "freeform", "web_search_tool_type": "text", "supports_search_tool": False,
            "truncation_policy": {"mode": "bytes", "limit": 10000}, "supports_parallel_tool_calls": True,
            "supports_image_detail_original": False, "context_window": 100000, "max_context_window": 100000,
            "effective_context_window_percent": 95, "experimental_supported_tools": [], "input_modalities": ["text", "image"],
        }
        with open(home + "/catalog.json", "w") as file:
            json.dump({"models": [model]}, file)
        off = ["enable_request_compression", "daemon_auto_start", "apps", "plugins", "remote_plugin", "skill_search", "tool_suggest", "memories"]
        lines = [
            'model = "mock-model"', 'model_provider = "mock"', f'model_catalog_json = "{home}/catalog.json"',
            'approval_policy = "never"', 'sandbox_mode = "read-only"', "check_for_update_on_startup = false",
            'cli_auth_credentials_store = "file"', 'web_search = "disabled"', "[model_providers.mock]", 'name = "mock"',
            f'base_url = "http://127.0.0.1:{self.model.port}/v1"', 'wire_api = "responses"', "request_max_retries = 0",
            "stream_max_retries = 0", "supports_websockets = false", "[analytics]", "enabled = false", "[feedback]",
            "enabled = false", "[otel]", 'exporter = "none"', f'[projects."{CWD}"]', 'trust_level = "trusted"',
            "[skills.bundled]", "enabled = false", "[features]", *(f"{name} = false" for name in off),
        ]
        with open(home + "/config.toml", "w") as file:
            file.write("\n".join(lines) + "\n")
        self.env = {
            "PATH": os.environ["PATH"], "HOME": HOME, "CODEX_HOME": home, "LANG": "C.UTF-8", "TZ": "UTC",
            "TERM": "xterm-256color", "SHELL": "/bin/bash", "USER": "demo",
        }

    def probe(self, cell, home):
        self.prepare(home)
        session = cell["session"]
        self.model.take()
        server = Server(self.binary, self.env)
        try:
            listed = server.call("thread/list", modelProviders=[], sourceKinds=["cli", "vscode", "exec", "appServer"])
            resumed = server.call("thread/resume", threadId=session)
            read = server.call("thread/read", threadId=session, includeTurns=True)
            out = {"listed": any(thread["id"] == session for thread in listed.get("data", []))}
            turns = (read.get("thread") or {}).get("turns") or []
            items = [item for turn in turns for item in turn["items"]]
            out["turns"] = len(turns)
            texts = json.dumps(items, ensure_ascii=False)
            wanted = [cell[name] for name in ("prompt", "last") if cell[name]]
            out["opened"] = bool(turns) and all(json.dumps(text, ensure_ascii=False)[1:-1] in texts for text in wanted)
            out["shown_calls"] = sum(item["type"] == "dynamicToolCall" for item in items)
            if "ERROR" in resumed:
                out.update(resumed=False, why=json.dumps(resumed)[:400], request=None)
                return out
            out["resumed"] = server.turn(session, "PROBE") == "completed"
        finally:
            server.close()
        asked = [a["body"] for a in self.model.take()]
        out["request"] = self.own(asked[0]["input"]) if asked else None
        return out

    def own(self, items):
        """The items without what the client puts in at each start, and without the prompt of the probe."""
        kept = []
        for item in items:
            item = {k: v for k, v in item.items() if k not in ("id", "internal_chat_message_metadata_passthrough")}
            if item["type"] == "message":
                text = "".join(part.get("text", "") for part in item["content"])
                if item["role"] == "developer" or text == "PROBE" or text.startswith("<environment_context>"):
                    continue
            kept.append(item)
        return kept


class Server:
    """The client as a server on its standard input and output."""

    def __init__(self, binary, env):
        self.process = subprocess.Popen(
            [binary, "app-server"], cwd=CWD, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, text=True,
        )
        self.messages, self.number = queue.Queue(), 0
        threading.Thread(target=self.listen, daemon=True).start()
        self.call("initialize", clientInfo={"name": "lane", "title": None, "version": "0"}, capabilities={"experimentalApi": True})
        self.send({"method": "initialized"})

    def listen(self):
        for line in self.process.stdout:
            self.messages.put(json.loads(line))

    def send(self, message):
        self.process.stdin.write(json.dumps(message) + "\n")
        self.process.stdin.flush()

    def call(self, method, **params):
        self.number += 1
        self.send({"id": self.number, "method": method, "params": params})
        while True:
            message = self.messages.get(timeout=40)
            if message.get("id") == self.number and "method" not in message:
                return message["result"] if "result" in message else {"ERROR": message.get("error")}

    def turn(self, thread, prompt):
        started = self.call("turn/start", threadId=thread, input=[{"type": "text", "text": prompt}])
        if "ERROR" in started:
            return json.dumps(started)
        while True:
            message = self.messages.get(timeout=60)
            if message.get("method") == "turn/completed":
                return message["params"]["turn"]["status"]

    def close(self):
        self.process.stdin.close()
        try:
            self.process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self.process.kill()


def main():
    inside()
    with open("/mnt/work/cells.json") as file:
        cells = json.load(file)
    clients, seen = {}, {}
    for cell in cells:
        kind = cell["to"]
        if kind not in clients:
            clients[kind] = {"claude-code": ClaudeCode, "codex": Codex}[kind]()
        home = f"{HOME}/{cell['name'].replace('/', '_')}"
        shutil.copytree(f"/mnt/work/homes/{cell['name']}", home)
        started = time.time()
        try:
            seen[cell["name"]] = clients[kind].probe(cell, home)
        except Exception as error:  # A client that hangs or dies is a result, and a red one.
            seen[cell["name"]] = {"listed": False, "opened": False, "resumed": False, "request": None, "why": repr(error)[:400]}
        seen[cell["name"]]["seconds"] = round(time.time() - started, 1)
    with open("/mnt/work/seen.json", "w") as file:
        json.dump(seen, file, ensure_ascii=False)


if __name__ == "__main__":
    main()
