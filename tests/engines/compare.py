"""Asks DuckDB, Polars, PyArrow and Spark the queries of docs/analytics.md, and compares with what the lines say."""

import datetime
import json
import pathlib
import re
import subprocess
import sys
import tempfile

import duckdb
import polars
import pyarrow
import pyarrow.compute as pc
import pyarrow.dataset
import pyarrow.ipc
from pyspark.sql import SparkSession

import reference
import split

ROOT = pathlib.Path(__file__).resolve().parents[2]
TABLES = ("events", "actions", "sessions")
FAILED = []


def check(what, found, expected):
    """Tells whether two things are the same; the run fails at its end."""
    if found == expected:
        print(f"  ok: {what}")
        return
    FAILED.append(what)
    if isinstance(found, set):
        found, expected = found - expected, expected - found
    print(f"  DIFFERS: {what}\n    found:    {found}\n    expected: {expected}")


def queries():
    """The SQL of docs/analytics.md, by the name in its first line."""
    text = (ROOT / "docs/analytics.md").read_text()
    found = re.findall(r"```sql\n-- (\w+): [^\n]*\n(.*?)```", text, re.DOTALL)
    return {name: query.strip().rstrip(";") for name, query in found}


def logs(palog, into):
    """Imports every snapshot of every fixture; of logs that are there several times, the first."""
    once = {}
    fixtures = sorted((ROOT / "conformance-fixtures/sources").glob("*/*/"))
    snapshots = [s for f in fixtures for s in (sorted(p for p in f.iterdir() if p.is_dir()) or [f])]
    for number, snapshot in enumerate(snapshots):
        directory = into / str(number)
        subprocess.run([palog, "import", snapshot, "-o", directory], capture_output=True, check=False)
        for path in sorted(directory.glob("*.palog.jsonl")):
            with path.open() as file:
                once.setdefault(json.loads(file.readline())["log"], path)
    return list(once.values())


def plain(rows):
    """Rows as a set, with days as text and counts as integers."""

    def cell(value):
        if isinstance(value, (datetime.date, datetime.datetime)):
            return value.isoformat()[:10]
        return value if value is None or isinstance(value, str) else int(value)

    return {tuple(cell(value) for value in row) for row in rows}


def by_duckdb(dataset):
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    for table in TABLES:
        source = f"read_parquet('{dataset}/{table}/**/*.parquet', hive_partitioning = true)"
        connection.execute(f"CREATE VIEW {table} AS SELECT * FROM {source}")
    kind = connection.execute("SELECT typeof(time), typeof(line), typeof(cause) FROM events LIMIT 1").fetchone()
    check("types", kind, ("TIMESTAMP WITH TIME ZONE", "BLOB", "VARCHAR[]"))
    lines = connection.execute("SELECT log, line FROM events ORDER BY log, line_number").fetchall()
    return lambda query: connection.execute(query).fetchall(), lines


def by_polars(dataset):
    frames = {t: polars.scan_parquet(f"{dataset}/{t}/**/*.parquet", hive_partitioning=True) for t in TABLES}
    schema = frames["events"].collect_schema()
    found = (schema["time"], schema["line"], schema["cause"])
    check("types", found, (polars.Datetime("us", "UTC"), polars.Binary, polars.List(polars.String)))
    context = polars.SQLContext(frames)
    lines = frames["events"].sort("log", "line_number").select("log", "line").collect().rows()
    return lambda query: context.execute(query).collect().rows(), lines


def by_spark(dataset):
    spark = session()
    for table in TABLES:
        spark.read.parquet(f"{dataset}/{table}").createOrReplaceTempView(table)
    types = dict(spark.table("events").dtypes)
    check("types", (types["time"], types["line"], types["cause"]), ("timestamp", "binary", "array<string>"))
    rows = spark.sql("SELECT log, line FROM events ORDER BY log, line_number").collect()
    return lambda query: [tuple(row) for row in spark.sql(query).collect()], [(r.log, bytes(r.line)) for r in rows]


def session():
    return (
        SparkSession.builder.master("local[2]")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.sql.shuffle.partitions", "4")
        .getOrCreate()
    )


def by_pyarrow(dataset):
    """PyArrow has no SQL: the same questions, asked in its own words."""
    events, actions, sessions = (
        pyarrow.dataset.dataset(f"{dataset}/{table}", partitioning="hive").to_table() for table in TABLES
    )
    found = tuple(str(events.schema.field(name).type) for name in ("time", "line", "cause"))
    check("types", found, ("timestamp[us, tz=UTC]", "binary", "list<item: string>"))
    check("the schema has a version", events.schema.metadata.get(b"palog.schema"), b"1")
    own = actions.filter(pc.invert(actions["inherited"]))
    ended = own.filter(pc.is_in(own["state"], pyarrow.array(["succeeded", "failed"])))
    ended = ended.append_column("failed", pc.cast(pc.equal(ended["state"], "failed"), pyarrow.int64()))
    counted = events.filter(pc.is_valid(events["counted_output"]))
    counted = counted.append_column("day", pc.cast(pc.floor_temporal(counted["time"], unit="day"), pyarrow.date32()))
    known = sessions.filter(pc.is_valid(sessions["duration_us"]))
    longest = known.sort_by([("duration_us", "descending"), ("log", "ascending")]).slice(0, 5)
    failures = ended.group_by("model").aggregate([("failed", "sum"), ("failed", "count")])
    tokens = counted.group_by("day").aggregate([("counted_input", "sum"), ("counted_output", "sum")])
    kinds = pyarrow.array(["approval.requested", "approval.ended"])
    asked = events.filter(pc.is_in(events["type"], kinds))
    answers = {
        "failures": failures.select(["model", "failed_sum", "failed_count"]),
        "unresolved": own.filter(own["unresolved"]).select(["log", "action"]),
        "tokens": tokens.select(["day", "counted_input_sum", "counted_output_sum"]),
        "longest": longest.select(["log", "duration_us"]),
        "asked": asked.select(["log"]),
    }
    ordered = events.sort_by([("log", "ascending"), ("line_number", "ascending")])
    lines = list(zip(ordered["log"].to_pylist(), ordered["line"].to_pylist()))
    asks = {query: answers[name] for name, query in queries().items()}
    return lambda query: [tuple(row.values()) for row in asks[query].to_pylist()], lines


ENGINES = {"DuckDB": by_duckdb, "Polars": by_polars, "PyArrow": by_pyarrow, "Spark": by_spark}


def main(palog):
    with tempfile.TemporaryDirectory() as scratch:
        scratch = pathlib.Path(scratch)
        inputs = logs(palog, scratch / "logs")
        check("there are enough logs", len(inputs) > 90, True)
        expected, asks = reference.answers(inputs), queries()
        check("every query has an answer", asks.keys(), expected.keys())
        check("every answer says something", [name for name, answer in expected.items() if not answer], [])
        originals = sorted(
            (json.loads(path.open().readline())["log"], path.read_bytes().split(b"\n")[:-1]) for path in inputs
        )
        originals = [(log, line) for log, lines in originals for line in lines]
        for option in ([], ["--partition", "vendor,month"]):
            dataset = scratch / f"dataset{len(option)}"
            command = [palog, "export", *inputs, "--to", "parquet", "-o", dataset, *option]
            subprocess.run(command, check=True, capture_output=True)
            for name, engine in ENGINES.items():
                print(f"{name}, {' '.join(option) or 'no partitions'}")
                ask, lines = engine(dataset)
                check("lines, byte for byte", lines == originals, True)
                for question, query in asks.items():
                    check(question, plain(ask(query)), expected[question])
        print("Arrow stream")
        command = [palog, "export", *inputs, "--to", "arrow-stream", "-o", "-"]
        output = subprocess.run(command, check=True, capture_output=True).stdout
        table = pyarrow.ipc.open_stream(output).read_all()
        check("lines, byte for byte", list(zip(table["log"].to_pylist(), table["line"].to_pylist())), originals)
        print("Spark, palog by input split")
        split.check(session(), palog, scratch / "split", check)
    if FAILED:
        sys.exit(f"{len(FAILED)} checks failed: {', '.join(FAILED)}")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]).resolve())
