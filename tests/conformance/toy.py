"""A harness that misbehaves in the way that its argument names; it runs without anything installed."""

from __future__ import annotations

import base64
import json
import os
import sys
import time

way, fine = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else ""


def answer(message: dict) -> dict | None:
    if fine and fine not in message["case"]:
        return {"refused": "not that one"}
    if way == "crash":
        print("Error: the floor gave way", file=sys.stderr, flush=True)
        os._exit(7)
    if way == "abort":
        os.abort()
    if way == "hang":
        time.sleep(60)
    if way == "silent":
        os.close(1)
        time.sleep(60)
    if way == "garbage":
        print("debug: entering run")
    if way == "long":
        sys.stdout.write("x" * 3000)
    if way == "other-id":
        return {"id": -1, "refused": "of another one"}
    if way == "unsupported":
        return {"unsupported": "cannot"}
    if way == "odd":
        return {"refused": "<b>\ud800\0\n" + "x" * 2000}
    if way == "deep":
        print('{"id": 1, "document": ' + '{"a":' * 50000 + "1" + "}" * 50001)
    if way == "refuse":
        return {"refused": "no"}
    if way == "pointer":
        return {"refused": "no", "pointer": "/elsewhere"}
    return {
        "open": {"document": {"zarr_format": 3, "node_type": "group"} if way == "wrong" else None},
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
for line in sys.stdin:
    message = json.loads(line)
    if message["type"] == "stop":
        break
    if message["type"] == "start":
        if way == "no-start":
            sys.exit("ModuleNotFoundError: No module named 'toy'")
        if way == "late-crash" and os.path.exists(fine):
            sys.exit("Error: not again")
        operations = ["open", "read", "write", "rounds", "keys", "store"]
        reply = {"protocol": 2 if way == "old" else 1, "name": "toy", "version": way}
        reply["capabilities"] = {"operations": ["open"] if way == "open-only" else operations, **claims}
    elif way == "late-crash":
        open(fine, "w").close()
        sys.exit(1)
    else:
        reply = {"id": message["id"], **answer(message)}
    print(json.dumps(reply), flush=True)
