"""A server that speaks the wire protocol of VAST's Python SDK, on loopback, with faults.

It was written from the SDK alone (vastdb 2.1.0, Apache License 2.0), whose request builders and flatbuffers say what goes over the wire. So it proves how we use
the protocol: which requests come, in which transaction, with which rows. It does not prove how VAST behaves.

Transactions see what was committed when they began, and their own changes; a commit applies the changes to what is there then.
"""

from __future__ import annotations

import io
import re
import struct
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

import flatbuffers
import pyarrow as pa
import pyarrow.compute as pc
from vastdb._internal import INTERNAL_ROW_ID, TABULAR_INVALID_ROW_ID, TABULAR_QUERY_DATA_COMPLETED_STREAM_ID
from vastdb.vast_flatbuf.org.apache.arrow.computeir.flatbuf import Call, FieldIndex, FieldRef, Literal, Source, UInt32Literal, UInt64Literal
from vastdb.vast_flatbuf.org.apache.arrow.computeir.flatbuf.ExpressionImpl import ExpressionImpl
from vastdb.vast_flatbuf.org.apache.arrow.computeir.flatbuf.LiteralImpl import LiteralImpl
from vastdb.vast_flatbuf.org.apache.arrow.computeir.flatbuf.Relation import Relation
from vastdb.vast_flatbuf.tabular import (
    GetTableStatsResponse,
    ListProjectionsResponse,
    ListSchemasResponse,
    ListTablesResponse,
    ObjectDetails,
)

REQUEST_BYTES_MAX = 5 << 20
CELL_BYTES_MAX = 126 << 10


@dataclass
class Table:
    """A table: its columns, how it is sorted, and rows with their ids."""

    schema: Any
    sorting: list[str]
    rows: Any = None
    projections: dict[str, Any] = field(default_factory=dict)

    @property
    def row_id(self) -> Any:
        return pa.decimal128(38, 0) if self.sorting else pa.uint64()


@dataclass
class Transaction:
    """What a transaction has changed."""

    schemas: set[str]
    tables: dict[str, Table]
    created: dict[str, Table] = field(default_factory=dict)
    inserted: dict[str, list[Any]] = field(default_factory=dict)
    deleted: dict[str, set[int]] = field(default_factory=dict)
    projected: dict[str, dict[str, Any]] = field(default_factory=dict)
    new_schemas: set[str] = field(default_factory=set)

    def table(self, name: str) -> Table | None:
        return self.created.get(name) or self.tables.get(name)

    def rows(self, name: str) -> Any:
        table = self.table(name)
        assert table is not None
        parts = [table.rows] if table.rows is not None else []
        rows = pa.concat_tables([*parts, *self.inserted.get(name, [])]) if parts or name in self.inserted else None
        gone = self.deleted.get(name)
        if rows is not None and gone:
            rows = rows.filter(pc.invert(pc.is_in(rows[INTERNAL_ROW_ID], pa.array(sorted(gone), pa.uint64()))))
        return rows


class Refused(Exception):
    """An answer with an error of S3."""

    def __init__(self, status: int, code: str) -> None:
        super().__init__(code)
        self.status, self.code = status, code


class Vast:
    """The database."""

    def __init__(self, *faults: str) -> None:
        self.faults = list(faults)
        self.schemas: set[str] = set()
        self.tables: dict[str, Table] = {}
        self.open: dict[int, Transaction] = {}
        self.requests: list[str] = []
        self.cell_bytes_max = CELL_BYTES_MAX
        self._next = 1
        self._lock = threading.RLock()
        handler = type("Bound", (Handler,), {"vast": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True
        self.endpoint = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def fault(self, name: str) -> bool:
        with self._lock:
            if name in self.faults:
                self.faults.remove(name)
                return True
        return False

    def number(self, count: int = 1) -> int:
        with self._lock:
            self._next += count
            return self._next - count

    def content(self, name: str) -> Any:
        """The committed rows of a table, `SCHEMA/TABLE`."""
        with self._lock:
            table = self.tables[name]
            if table.rows is None:
                return table.schema.empty_table()
            return table.rows.drop_columns([INTERNAL_ROW_ID])

    def begin(self) -> int:
        with self._lock:
            number = self.number()
            tables = {name: Table(table.schema, table.sorting, table.rows, table.projections) for name, table in self.tables.items()}
            self.open[number] = Transaction(set(self.schemas), tables)
            return number

    def commit(self, number: int) -> None:
        with self._lock:
            tx = self.open.pop(number, None)
            if tx is None:
                raise Refused(404, "NoSuchTransaction")
            if any(name in self.tables for name in tx.created):
                raise Refused(409, "TabularTableExists")
            self.schemas |= tx.new_schemas
            self.tables.update(tx.created)
            for name, projections in tx.projected.items():
                self.tables[name].projections.update(projections)
            for name, table in self.tables.items():
                now = Transaction(set(), {name: table}, {}, {name: tx.inserted[name]} if name in tx.inserted else {})
                now.deleted = {name: tx.deleted.get(name, set())}
                table.rows = now.rows(name)

    def transaction(self, number: int) -> Transaction:
        with self._lock:
            if number not in self.open:
                raise Refused(404, "NoSuchTransaction")
            return self.open[number]


class Handler(BaseHTTPRequestHandler):
    """One connection."""

    vast: Vast
    protocol_version = "HTTP/1.1"
    server_version = "vast 5.4.0.1"
    sys_version = ""

    def log_message(self, *_: object) -> None:
        return

    def version_string(self) -> str:
        return self.server_version

    def _handle(self) -> None:
        url = urlsplit(self.path)
        word = re.match(r"[a-z-]*", url.query)[0]  # type: ignore[index]
        self.options = dict(parse_qsl(url.query, keep_blank_values=True))
        self.parts = [unquote(part) for part in url.path.strip("/").split("/") if part]
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        name = f"{self.command} {word}".strip()
        self.vast.requests.append(name)
        try:
            self._check(body)
            if self.vast.fault(f"slow down {name}"):
                raise Refused(503, "SlowDown")
            if self.vast.fault(f"error {name}"):
                raise Refused(500, "InternalError")
            if self.vast.fault(f"drop {name}"):
                raise ConnectionAbortedError
            answer = getattr(self, f"_{self.command.lower()}_{word.replace('-', '_')}")(body)
            if self.vast.fault(f"reply lost {name}"):
                raise ConnectionAbortedError
            headers, content = answer if isinstance(answer, tuple) else ({}, answer)
            self._answer(200, headers, content or b"")
        except ConnectionAbortedError:
            self.close_connection = True
            self.connection.close()
        except Refused as error:
            content = f"<Error><Code>{error.code}</Code><Message>{error.code} of the test</Message></Error>".encode()
            self._answer(error.status, {}, content)

    do_GET = do_POST = do_PUT = do_DELETE = do_HEAD = _handle

    def _answer(self, status: int, headers: dict[str, str], content: bytes) -> None:
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(content))}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def _check(self, body: bytes) -> None:
        signed = self.headers.get("Authorization", "")
        if "Credential=key/" not in signed or not signed.startswith("AWS4-HMAC-SHA256 "):
            raise Refused(403, "InvalidAccessKeyId")
        if len(body) > REQUEST_BYTES_MAX:
            raise Refused(400, "EntityTooLarge")

    @property
    def tx(self) -> Transaction:
        return self.vast.transaction(int(self.headers["tabular-txid"]))

    @property
    def name(self) -> str:
        return "/".join(self.parts[1:])

    @property
    def table(self) -> Table:
        found = self.tx.table(self.name)
        if found is None:
            raise Refused(404, "NoSuchTable")
        return found

    # Transactions

    def _head_(self, _: bytes) -> None:
        if self.parts != ["bucket"]:
            raise Refused(404, "NoSuchBucket")

    def _get_transaction(self, _: bytes) -> None:
        return

    def _post_transaction(self, _: bytes) -> Any:
        return {"tabular-txid": str(self.vast.begin())}, b""

    def _put_transaction(self, _: bytes) -> None:
        self.vast.commit(int(self.headers["tabular-txid"]))

    def _delete_transaction(self, _: bytes) -> None:
        self.vast.open.pop(int(self.headers["tabular-txid"]), None)

    # Schemas and tables

    def _wanted(self, names: list[str]) -> list[str]:
        exact, prefix = self.headers.get("tabular-name-exact-match"), self.headers.get("tabular-name-prefix") or ""
        return [name for name in names if (name == exact if exact is not None else name.startswith(prefix))]

    def _list(self, kind: Any, add: Any, names: list[str], *more: tuple[Any, str]) -> Any:
        builder = flatbuffers.Builder(256)
        details = []
        for name in names:
            texts = [builder.CreateString(text) for text in (name, "", "1")]
            ObjectDetails.Start(builder)
            for set_text, text in zip((ObjectDetails.AddName, ObjectDetails.AddProperties, ObjectDetails.AddHandle), texts, strict=True):
                set_text(builder, text)
            details.append(ObjectDetails.End(builder))
        builder.StartVector(4, len(details), 4)
        for detail in reversed(details):
            builder.PrependUOffsetTRelative(detail)
        listed = builder.EndVector()
        texts = [(set_text, builder.CreateString(text)) for set_text, text in more]
        kind.Start(builder)
        for set_text, text in texts:
            set_text(builder, text)
        add(builder, listed)
        builder.Finish(kind.End(builder))
        headers = {"tabular-next-key": "0", "tabular-is-truncated": "false", "tabular-list-count": str(len(names))}
        return headers, bytes(builder.Output())

    def _get_schema(self, _: bytes) -> Any:
        names = self._wanted(sorted(self.tx.schemas | self.tx.new_schemas))
        kind = ListSchemasResponse
        return self._list(kind, kind.AddSchemas, names, (kind.AddBucketName, self.parts[0]))

    def _post_schema(self, _: bytes) -> None:
        if self.name in self.tx.schemas:
            raise Refused(409, "TabularSchemaExists")
        self.tx.new_schemas.add(self.name)

    def _get_table(self, _: bytes) -> Any:
        tables = {**self.tx.tables, **self.tx.created}
        names = self._wanted([name.split("/")[1] for name in tables if name.split("/")[0] == self.name])
        kind = ListTablesResponse
        return self._list(kind, kind.AddTables, names, (kind.AddBucketName, self.parts[0]), (kind.AddSchemaName, self.name))

    def _post_table(self, body: bytes) -> None:
        if self.tx.table(self.name) is not None:
            raise Refused(409, "TabularTableExists")
        schema = pa.ipc.read_schema(pa.py_buffer(body))
        sorting = []
        while (column := self.headers.get(f"tabular-sorted-column-{len(sorting)}")) is not None:
            sorting.append(schema.names[int(column)])
        self.tx.created[self.name] = Table(schema, sorting)

    def _columns(self, schema: Any) -> Any:
        return {"tabular-next-key": "0", "tabular-is-truncated": "false"}, _stream(schema, [])

    def _get_column(self, _: bytes) -> Any:
        return self._columns(self.table.schema)

    def _get_sorted_columns(self, _: bytes) -> Any:
        return self._columns(pa.schema([self.table.schema.field(name) for name in self.table.sorting]))

    def _get_stats(self, _: bytes) -> bytes:
        rows = self.tx.rows(self.name)
        builder = flatbuffers.Builder(256)
        kind = GetTableStatsResponse
        text = builder.CreateString("")
        builder.StartVector(4, 0, 4)
        vips = builder.EndVector()
        kind.Start(builder)
        kind.AddNumRows(builder, 0 if rows is None else rows.num_rows)
        kind.AddAddressType(builder, text)
        kind.AddVips(builder, vips)
        kind.AddSortingKeyEnabled(builder, bool(self.table.sorting))
        builder.Finish(kind.End(builder))
        return bytes(builder.Output())

    def _post_projection(self, body: bytes) -> None:
        self.tx.projected.setdefault(self.name, {})[self.options["name"]] = body

    def _get_projection(self, _: bytes) -> Any:
        names = [*self.table.projections, *self.tx.projected.get(self.name, {})]
        kind = ListProjectionsResponse
        bucket, schema, table = self.parts
        names = self._wanted(names)
        return self._list(
            kind, kind.AddProjections, names, (kind.AddBucketName, bucket), (kind.AddSchemaName, schema), (kind.AddTableName, table)
        )

    # Rows

    def _post_rows(self, body: bytes) -> bytes:
        (batch,) = pa.ipc.open_stream(body)
        for column in batch.columns:
            if pa.types.is_binary(column.type) or pa.types.is_string(column.type):
                largest = pc.max(pc.binary_length(column)).as_py() or 0
            elif pa.types.is_list(column.type):
                largest = (pc.max(pc.list_value_length(column)).as_py() or 0) * column.type.value_type.bit_width // 8
            else:
                continue
            if largest > self.vast.cell_bytes_max:
                raise Refused(400, "TabularCellTooLarge")
        first = self.vast.number(batch.num_rows)
        ids = pa.array(range(first, first + batch.num_rows), pa.uint64())
        rows = pa.Table.from_batches([batch]).select(self.table.schema.names).cast(self.table.schema)
        self.tx.inserted.setdefault(self.name, []).append(rows.append_column(INTERNAL_ROW_ID, ids))
        answer = pa.schema([pa.field(INTERNAL_ROW_ID, self.table.row_id)])
        return _stream(answer, [pa.record_batch([ids.cast(self.table.row_id)], schema=answer)])

    def _delete_rows(self, body: bytes) -> None:
        (batch,) = pa.ipc.open_stream(body)
        ids = {int(number) for number in batch[INTERNAL_ROW_ID].to_pylist()}
        there = self.tx.rows(self.name)
        if there is None or not ids <= set(there[INTERNAL_ROW_ID].to_pylist()):
            raise Refused(400, "TabularNoSuchRow")
        self.tx.deleted.setdefault(self.name, set()).update(ids)

    def _get_data(self, body: bytes) -> bytes:
        split, splits, _ = map(int, self.headers["tabular-split"].split(","))
        streams = int(self.headers["tabular-num-of-subsplits"])
        relation = Relation.GetRootAs(body)
        source = Source.Source()
        source.Init(relation.Impl().Bytes, relation.Impl().Pos)
        schema = source.Schema()
        names = [schema.Fields(at).Name().decode() for at in range(schema.FieldsLength())]
        leaves = [name for name in names for _ in (0, 1)[: 1 + self._is_list(name)]]
        rows = self.tx.rows(self.name)
        if rows is None:
            rows = pa.table({name: pa.array([], self._type(name)) for name in [*self.table.schema.names, INTERNAL_ROW_ID]})
        rows = rows.set_column(rows.num_columns - 1, INTERNAL_ROW_ID, rows[INTERNAL_ROW_ID].cast(self.table.row_id))
        rows = self._filter(rows, source.Filter(), leaves)
        wanted = [leaves[source.Projection(at).Position()] for at in range(source.ProjectionLength())]
        # Everything is in the first part of the first split.
        rows = rows if split == 0 else rows.slice(0, 0)
        assert splits >= 1
        out = io.BytesIO()
        for stream in range(streams):
            some = (rows if stream == 0 else rows.slice(0, 0)).combine_chunks()
            for name in wanted:
                for message in _messages(name, some[name].combine_chunks()):
                    out.write(struct.pack("<LQ", stream, TABULAR_INVALID_ROW_ID) + message)
        out.write(struct.pack("<L", TABULAR_QUERY_DATA_COMPLETED_STREAM_ID))
        return out.getvalue()

    def _type(self, name: str) -> Any:
        return pa.uint64() if name == INTERNAL_ROW_ID else self.table.schema.field(name).type

    def _is_list(self, name: str) -> bool:
        return bool(pa.types.is_list(self._type(name)))

    def _filter(self, rows: Any, expression: Any, leaves: list[str]) -> Any:
        """`and` of `or` of `equal`, which is all that the sink asks."""
        if expression is None or expression.ImplType() != ExpressionImpl.Call:
            return rows
        for any_of in _arguments(expression):
            masks = []
            for equal in _arguments(any_of):
                column, literal = _arguments(equal)
                reference, index = FieldRef.FieldRef(), FieldIndex.FieldIndex()
                reference.Init(column.Impl().Bytes, column.Impl().Pos)
                index.Init(reference.Ref().Bytes, reference.Ref().Pos)
                masks.append(pc.equal(rows[leaves[index.Position()]], pa.scalar(_value(literal))))
            mask = masks[0]
            for other in masks[1:]:
                mask = pc.or_(mask, other)
            rows = rows.filter(mask)
        return rows


def _arguments(expression: Any) -> list[Any]:
    call = Call.Call()
    call.Init(expression.Impl().Bytes, expression.Impl().Pos)
    return [call.Arguments(at) for at in range(call.ArgumentsLength())]


def _value(expression: Any) -> int:
    literal = Literal.Literal()
    literal.Init(expression.Impl().Bytes, expression.Impl().Pos)
    kinds = {LiteralImpl.UInt64Literal: UInt64Literal.UInt64Literal, LiteralImpl.UInt32Literal: UInt32Literal.UInt32Literal}
    number = kinds[literal.ImplType()]()
    number.Init(literal.Impl().Bytes, literal.Impl().Pos)
    return int(number.Value())


def _stream(schema: Any, batches: list[Any]) -> bytes:
    out = io.BytesIO()
    with pa.ipc.new_stream(out, schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
    return out.getvalue()


def _messages(name: str, column: Any) -> list[bytes]:
    """The stream of one column, message by message."""
    if isinstance(column, pa.ChunkedArray):
        column = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
    schema = pa.schema([pa.field(name, column.type)])
    batch = pa.record_batch([column], schema=schema)
    return [schema.serialize().to_pybytes(), batch.serialize().to_pybytes(), b"\xff\xff\xff\xff\0\0\0\0"]
