"""Model servers on loopback that give one answer to everything and keep what they were asked (standard library only)."""
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

ANSWER = "PROBE-OK"


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def body(self):
        raw = self.rfile.read(int(self.headers.get("content-length") or 0))
        try:
            return json.loads(raw or b"null")
        except ValueError:
            return {"unparsed": raw.decode("utf8", "replace")}

    def keep(self, body):
        with self.server.lock:
            self.server.asked.append({"path": self.path, "body": body})

    def json(self, value, status=200):
        data = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def events(self, events):
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        self.close_connection = True
        for kind, event in events:
            self.wfile.write(f"event: {kind}\ndata: {json.dumps(event)}\n\n".encode())

    def do_HEAD(self):
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()

    def do_GET(self):
        self.json({"object": "list", "data": [], "models": [], "has_more": False})


class Anthropic(Handler):
    def do_POST(self):
        body = self.body()
        if "count_tokens" in self.path:
            return self.json({"input_tokens": 100})
        if not self.path.startswith("/v1/messages"):
            return self.json({})
        self.keep(body)
        usage = {"input_tokens": 100, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0, "output_tokens": 2}
        message = {
            "id": "msg_lane%06d" % len(self.server.asked), "type": "message", "role": "assistant",
            "model": body.get("model", "mock"), "content": [{"type": "text", "text": ANSWER}],
            "stop_reason": "end_turn", "stop_sequence": None, "usage": usage,
        }
        if not body.get("stream"):
            return self.json(message)
        block = {"type": "text", "text": ""}
        delta = {"type": "text_delta", "text": ANSWER}
        stop = {"stop_reason": "end_turn", "stop_sequence": None}
        self.events([
            ("message_start", {"type": "message_start", "message": dict(message, content=[], stop_reason=None)}),
            ("content_block_start", {"type": "content_block_start", "index": 0, "content_block": block}),
            ("content_block_delta", {"type": "content_block_delta", "index": 0, "delta": delta}),
            ("content_block_stop", {"type": "content_block_stop", "index": 0}),
            ("message_delta", {"type": "message_delta", "delta": stop, "usage": {"output_tokens": 2}}),
            ("message_stop", {"type": "message_stop"}),
        ])


class Responses(Handler):
    def do_POST(self):
        body = self.body()
        if not self.path.split("?")[0].endswith("/responses"):
            return self.json({"error": {"message": "not found"}}, 404)
        self.keep(body)
        number = len(self.server.asked)
        response = {"id": "resp_lane%06d" % number, "object": "response"}
        content = [{"type": "output_text", "text": ANSWER, "annotations": []}]
        item = {"type": "message", "id": "msg_lane%06d" % number, "status": "completed", "role": "assistant", "content": content}
        usage = {
            "input_tokens": 100, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": 2,
            "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 102,
        }
        done = dict(response, status="completed", output=[item], usage=usage)
        self.events([
            ("response.created", {"type": "response.created", "response": dict(response, status="in_progress")}),
            ("response.output_item.done", {"type": "response.output_item.done", "output_index": 0, "item": item}),
            ("response.completed", {"type": "response.completed", "response": done}),
        ])


class Model:
    """A running model server."""

    def __init__(self, handler):
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.server.daemon_threads = True
        self.server.asked, self.server.lock = [], threading.Lock()
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.port = self.server.server_port

    def take(self):
        """What was asked since the last time."""
        with self.server.lock:
            asked, self.server.asked[:] = list(self.server.asked), []
        return asked
