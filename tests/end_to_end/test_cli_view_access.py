"""`lanescope view`: who may ask the server of the page, and what it does with hostile requests and texts."""

from __future__ import annotations

import json
import pathlib
import socket
import subprocess
import time

from view_server import View, small, viewing, write_trace  # noqa: F401  # `small` is a fixture


def test_questions_need_the_token(small: View) -> None:
    for token in [None, "", "x", small.token[:-1], small.token + "0", small.token.upper() + " "]:
        for method, path in [("GET", "/api/meta"), ("POST", "/api/frame"), ("GET", "/api/alive"), ("GET", "/api/none")]:
            answer = small.ask(method, path, "{}" if method == "POST" else None, token=token)
            assert answer.status == 401 and small.token.encode() not in answer.content
            assert b"slice" not in answer.content
    assert small.ask("GET", "/", token=None).status == 200  # the page itself, which holds nothing


def test_a_name_that_was_bound_to_this_machine_gets_nothing(small: View) -> None:
    for host in ["evil.example", f"evil.example:{small.port}", f"127.0.0.1.evil.example:{small.port}", "0.0.0.0", "192.168.0.1"]:
        for path in ["/", "/api/meta", "/assets/page.js"]:
            assert small.ask("GET", path, headers={"Host": host}).status == 403
    for host in [f"localhost:{small.port}", "127.0.0.1:9999", f"[::1]:{small.port}"]:  # as ssh forwards it
        assert small.ask("GET", "/api/meta", headers={"Host": host}).status == 200


def test_another_page_gets_nothing(small: View) -> None:
    own = f"http://127.0.0.1:{small.port}"
    for origin in ["http://evil.example", "null", "https://127.0.0.1", f"http://127.0.0.1:{small.port + 1}", f"http://localhost:{small.port}"]:
        answer = small.ask("POST", "/api/frame", "{}", headers={"Origin": origin})
        assert answer.status == 403
        assert answer.getheader("Access-Control-Allow-Origin") is None
    answer = small.ask("POST", "/api/names", {"names": [0]}, headers={"Origin": own})
    assert answer.status == 200 and answer.getheader("Access-Control-Allow-Origin") is None
    assert small.ask("OPTIONS", "/api/frame", headers={"Origin": "http://evil.example"}).status in (403, 404, 405)


def test_every_answer_has_the_headers(small: View) -> None:
    for path in ["/", "/api/meta", "/none"]:
        answer = small.ask("GET", path)
        policy = answer.getheader("Content-Security-Policy")
        assert policy.startswith("default-src 'none'; script-src 'self'") and "unsafe" not in policy and "frame-ancestors 'none'" in policy
        assert answer.getheader("X-Content-Type-Options") == "nosniff"
        assert answer.getheader("Referrer-Policy") == "no-referrer"
        assert answer.getheader("Cross-Origin-Resource-Policy") == "same-origin"
        assert answer.getheader("Cache-Control") == "no-store"


def test_no_path_leads_out_of_the_page(small: View) -> None:
    for path in ["/assets/../index.html", "/assets/..%2f..%2fetc/passwd", "/../../etc/passwd", "/assets/%2e%2e/%2e%2e/conftest.py",
                 "//etc/passwd", "/assets/", "/assets/..", "/assets/a/b", "/etc/passwd", "/assets/page.js%00"]:
        answer = small.ask("GET", path)
        assert answer.status in (400, 404), path
        assert b"root:" not in answer.content and b"import" not in answer.content


def test_long_and_broken_requests_get_an_error_and_nothing_else(small: View) -> None:
    assert small.ask("POST", "/api/frame", b'{"a":"' + b"x" * (2 << 20) + b'"}').status in (400, 413)
    assert small.ask("GET", "/api/" + "a" * 100_000).status in (400, 404, 414)
    for body in ["", "[]", "null", "{", '{"t0":1e999}', '{"t0":"x","t1":2,"step":1}', '{"lanes":[1e300],"t0":0,"t1":1,"step":1}',
                 '{"t0":5,"t1":5,"step":1,"lanes":[]}', '{"t0":0,"t1":9e15,"step":1,"lanes":[0]}', '{"trace":7}', '{"trace":-1}',
                 "[" * 5000, '{"t0":0,"t1":100,"step":1,"lanes":[4000000000]}', "\xff"]:
        assert small.ask("POST", "/api/frame", body.encode("latin-1")).status == 400, body
    for path in ["event", "at", "area", "lanes", "search", "table", "flame", "gap", "save", "perfetto", "notes", "names"]:
        assert small.ask("POST", f"/api/{path}", '{"slice":4294967295,"lane":99999,"row":-1,"t0":3,"t1":1,"text":7,"names":7}').status == 400, path
    assert small.json("/api/meta")


def test_slow_clients_do_not_keep_others_waiting(small: View) -> None:
    slow = []
    for _ in range(12):
        connection = socket.create_connection(("127.0.0.1", small.port))
        connection.sendall(b"POST /api/frame HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1000000\r\nX-Token: " + small.token.encode() + b"\r\n\r\n{")
        slow.append(connection)
    start = time.monotonic()
    assert small.json("/api/meta")
    assert time.monotonic() - start < 5
    for connection in slow:
        connection.close()


def test_only_this_machine_is_listened_to(small: View) -> None:
    listening = subprocess.run(["cat", "/proc/net/tcp"], capture_output=True, text=True, check=True).stdout
    own = [line.split()[1] for line in listening.splitlines()[1:] if line.split()[1].endswith(f":{small.port:04X}") and line.split()[3] == "0A"]
    assert own == [f"0100007F:{small.port:04X}"]


def test_hostile_texts_of_a_trace_stay_text(binary: str, tmp_path: pathlib.Path) -> None:
    hostile = ["<script>alert(1)</script>", "</script><img src=x onerror=alert(1)>", "\u202egnirts\u202c", "k" * 5000, "", "\x1b[31m", "a\nb",
               "\"'`${}", "_Z" + "N" * 3000]
    events = []
    for i, name in enumerate(hostile):
        events += [{"ph": "X", "cat": "cpu_op", "name": name, "pid": 1, "tid": 2, "ts": 10 * i, "dur": 5, "args": {name or "e": name}},
                   {"ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": 7, "ts": 10 * i, "dur": 0}]
    with viewing(binary, write_trace(tmp_path / "hostile.json", events)) as view:
        meta = view.json("/api/meta")["traces"][0]
        assert meta["slice_count"] == len(events)
        for slice_ in range(meta["slice_count"]):
            event = view.json("/api/event", {"slice": slice_})
            shown = json.dumps([event["name"], event["short"], event["args"], event["command"]])
            assert "\\u202e" not in shown and "\\u001b" not in shown and len(event["short"]) <= 130 and len(event["name"]) <= 5010
        for page in [view.ask("GET", "/api/explain?trace=0"), view.ask("GET", "/api/tour?trace=0")]:
            assert page.getheader("Content-Type") == "application/json; charset=utf-8"
