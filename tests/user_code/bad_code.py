"""Mistakes that a type checker finds: each comment names the kind of mistake on its line."""

from __future__ import annotations

import numpy as np

import zarrlite
from zarrlite import NoSuchName as NoSuchName  # attr-defined
from zarrlite.codecs import Transpose, Zstd

zarrlite.no_such_name  # attr-defined
zarrlite.array([1, 2], chunk=3)  # call-arg

zarrlite.open("x", mode="rw")  # arg-type
zarrlite.open("x", mod="r")  # call-arg
zarrlite.open("x", "r")  # call-arg
zarrlite.open(3)  # arg-type
zarrlite.open("x", strict="no")  # arg-type
zarrlite.open("x", missing_chunks="zero")  # arg-type
zarrlite.open("x")[0]  # index

zarrlite.open_array("x", mode=None)  # arg-type
zarrlite.open_array("x", chunk=(2, 2))  # call-arg
zarrlite.open_array("x", zarr_format=2)  # arg-type
zarrlite.open_array("x", options=["/codecs/0"])  # arg-type

zarrlite.open_group("x", shape=(2, 2))  # call-arg
zarrlite.open_group("x", attributes=[1])  # arg-type
zarrlite.open_group("x").create_array(shape=3, dtype="u1")  # call-arg
zarrlite.open_group("x").create_array("a", shape="3", dtype="u1")  # arg-type
zarrlite.open_group("x").create_array("a", shape=(2.5,), dtype="u1")  # arg-type
zarrlite.open_group("x").create_group("a", shape=3)  # call-arg
zarrlite.open_group("x").require_array("a", shape=3)  # call-arg
zarrlite.open_group("x").require_array("a", shape=3, dtype="u1", chunk=3)  # call-arg
zarrlite.open_group("x").require_array("a", shape=3, dtype="u1", chunks="large")  # arg-type
zarrlite.open_group("x").members(depth=1)  # call-arg

zarrlite.create_array("x", shape=3, dtype="u1", chunks="large")  # arg-type
zarrlite.create_array("x", shape=3, dtype="u1", filters=Zstd())  # arg-type
zarrlite.create_array("x", shape=3, dtype="u1", compressors=[Transpose((0,))])  # list-item
zarrlite.create_array("x", shape=3, dtype="u1", codecs=Zstd())  # arg-type
zarrlite.create_array("x", shape=3, dtype="u1", overwrite="yes")  # arg-type
zarrlite.create_array("x", shape=3, dtype="u1", order="K")  # arg-type
zarrlite.create_array("x", shape=3, dtype="u1", config=True)  # arg-type
zarrlite.create_array("x", shape=3, dtype="u1", path="a")  # call-arg
zarrlite.create_array("x", shape=3, dtype=3)  # arg-type
zarrlite.create_group("x", attribute={})  # call-arg
zarrlite.copy("x", "y")  # arg-type
zarrlite.consolidate_metadata()  # call-arg

array = zarrlite.open_array("x")
array.resize("large")  # arg-type
array.append(np.zeros(3), axis="rows")  # arg-type
array.shape = "large"  # assignment
array.chunks = (1,)  # misc
array.no_such_property  # attr-defined
array.attrs.put([("a", 1)])  # arg-type
array.attrs[1] = 2  # index

zarrlite.config.set(["array.order"])  # arg-type
zarrlite.config.get(1)  # call-overload
zarrlite.config.put({})  # attr-defined
zarrlite.create_array("x", shape=3, dtype="u1", shards={"shape": 4, "index_location": "middle"})  # arg-type
zarrlite.create_array("x", shape=3, dtype="u1", shards={"index_location": "end"})  # arg-type
zarrlite.create_array("x", shape=3, dtype=zarrlite.codecs.ZstdCodec())  # arg-type
zarrlite.codecs.ZstdCodec(levl=3)  # call-arg
zarrlite.zeros((2, 2), chunk=1)  # call-arg
zarrlite.open_group("x").move("a")  # call-arg
array.get_basic_selection(..., field="a")  # call-arg
array.with_config({"order": "F"}).orders  # attr-defined
array.get_basic_selection(..., out=[0])  # arg-type
array.with_config(("F", True))  # arg-type
