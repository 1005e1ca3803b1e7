"""A toy harness that behaves, or misbehaves, as its first argument says; it needs only the standard library.

The second argument, if any, is the only case in which the harness misbehaves: it refuses all other cases. In two modes,
the second argument is a file instead. With `late-crash`, the first process creates the file before it crashes, so that
later processes fail to start. With `leave-a-child`, the file receives the process id of a child.
"""

from __future__ import annotations

import base64
import json
import os
import sys
import time

mode, option = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else ""


def answer(message: dict) -> dict | None:
    if option and mode != "leave-a-child" and option not in message["case"]:
        return {"refused": "not this case"}
    if mode == "crash":
        print("Error: out of order", file=sys.stderr, flush=True)
        os._exit(7)
    if mode == "abort":
        os.abort()
    if mode == "hang":
        time.sleep(60)
    if mode == "leave-a-child":
        ready, done = os.pipe()
        if os.fork() == 0:
            os.setsid()  # leave the process group
            with open(option, "w") as file:
                file.write(str(os.getpid()))
            os.write(done, b".")
            time.sleep(600)
        os.read(ready, 1)
    if mode == "silent":
        os.close(1)
        time.sleep(60)
    if mode == "garbage":
        print("debug: entering run")
    if mode == "long":
        sys.stdout.write("x" * 3000)
    if mode == "other-id":
        return {"id": -1, "refused": "another request"}
    if mode == "unsupported":
        return {"unsupported": "cannot"}
    if mode == "odd":
        return {"refused": "<b>\ud800\0\n" + "x" * 2000}
    if mode == "deep":
        print('{"id": 1, "document": ' + '{"a":' * 1_000_000 + "1" + "}" * 1_000_001)
    if mode == "refuse":
        return {"refused": "no"}
    if mode == "pointer":
        return {"refused": "no", "pointer": "/elsewhere"}
    return {
        "open": {"document": {"zarr_format": 3, "node_type": "group"} if mode == "wrong" else None},
        "read": {"shape": [1], "data": base64.b64encode(b"x").decode()},
        "write": {"store": {"c/0": base64.b64encode(b"x").decode()}},
        "rounds": {"rounds": []},
        "keys": {"coords": []},
        "store": {"results": [], "store": {}},
    }[message["op"]]


claims = {
    "data_type": ["uint8", "int16"],
    "chunk_grid": ["regular"],
    "chunk_key_encoding": ["default", "v2"],
    "codecs": ["bytes"],
}
if mode == "deaf":  # answers without reading the requests
    message = json.loads(sys.stdin.readline())
    about = {"protocol": 1, "name": "toy", "version": mode}
    about["capabilities"] = {"operations": ["open", "read", "write", "rounds", "keys", "store"], **claims}
    print(json.dumps(about), flush=True)
    for number in range(1, 10_000):
        print(json.dumps({"id": number, "refused": "no"}), flush=True)
    time.sleep(600)
for line in sys.stdin:
    message = json.loads(line)
    if message["type"] == "stop":
        break
    if message["type"] == "start":
        if mode == "no-start":
            sys.exit("ModuleNotFoundError: No module named 'toy'")
        if mode == "late-crash" and os.path.exists(option):
            sys.exit("Error: not again")
        operations = ["open", "read", "write", "rounds", "keys", "store"]
        reply = {"protocol": 2 if mode == "old" else 1, "name": "toy", "version": mode}
        reply["capabilities"] = {"operations": ["open"] if mode == "open-only" else operations, **claims}
    elif mode == "late-crash":
        open(option, "w").close()
        sys.exit(1)
    else:
        reply = {"id": message["id"], **answer(message)}
    print(json.dumps(reply), flush=True)
