"""What DuckDB and Polars need to turn the lines of logs into Parquet: peers.py PALOG LOGS DIR, in the environment of `run`.

Prints wall seconds, CPU seconds and the peak of anonymous memory of each, on the same bytes, with zstd level 1 and two threads, and
whether the payload of every line came through as the same JSON value.
"""

import json
import pathlib
import resource
import subprocess
import sys
import time

ENVELOPE = {
    "palog": "INTEGER", "log": "VARCHAR", "seq": "BIGINT", "id": "VARCHAR", "type": "VARCHAR", "time": "TIMESTAMP",
    "actor": "STRUCT(kind VARCHAR, id VARCHAR)", "src": "JSON", "data": "JSON",
}  # fmt: skip

DUCKDB = """
import duckdb
connection = duckdb.connect(config={{"threads": 2}})
columns = {columns}
source = connection.read_json({logs!r}, format="newline_delimited", columns=columns, maximum_object_size=1 << 26)
connection.execute("COPY (SELECT * FROM source) TO {output!r} (FORMAT parquet, COMPRESSION zstd, COMPRESSION_LEVEL 1)")
"""

POLARS = """
import polars
schema = {{"palog": polars.Int32, "log": polars.String, "seq": polars.Int64, "id": polars.String, "type": polars.String,
          "time": polars.String, "data": polars.String}}
lines = polars.scan_ndjson({logs!r}, schema=schema, ignore_errors=False)
lines.sink_parquet({output!r}, compression="zstd", compression_level=1)
"""


def measure(command, env=None):
    """Runs a command and returns wall, CPU and the peak of anonymous memory in MB, looked at every 10 ms."""
    before, start, peak = resource.getrusage(resource.RUSAGE_CHILDREN), time.time(), 0
    process = subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL)
    while process.poll() is None:
        try:
            status = pathlib.Path(f"/proc/{process.pid}/status").read_text()
            peak = max(peak, *(int(line.split()[1]) for line in status.splitlines() if line.startswith("RssAnon")), 0)
        except (OSError, TypeError):
            pass
        time.sleep(0.01)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    return process.returncode, time.time() - start, cpu, peak / 1024


def same_values(output, logs):
    """Of the lines whose payload is an object, how many came through as another value or as none, of a sample."""
    import pyarrow.parquet

    kept = {}
    for batch in pyarrow.parquet.ParquetFile(output).iter_batches(columns=["id", "data"], batch_size=4096):
        kept.update(zip(batch["id"].to_pylist(), batch["data"].to_pylist()))
    wrong = sampled = 0
    for path in logs:
        with open(path, "rb") as file:
            for number, line in enumerate(file):
                if number % 100 == 0:
                    event, sampled = json.loads(line), sampled + 1
                    try:
                        wrong += json.loads(kept.get(event["id"]) or "null") != event["data"]
                    except json.JSONDecodeError:
                        wrong += 1
    return f"{wrong} of {sampled} sampled payloads are other values"


def main(palog, logs, scratch):
    paths = sorted(str(path) for path in logs.glob("*.palog.jsonl"))
    size = sum(pathlib.Path(path).stat().st_size for path in paths) / 1e6
    print(f"{size:.0f} MB in {len(paths)} logs")
    scripts = {"DuckDB": DUCKDB, "Polars": POLARS}
    runs = {"palog": [palog, "export", logs, "--to", "parquet", "-o", scratch / "palog"]}
    for name, script in scripts.items():
        script = script.format(logs=paths, output=str(scratch / f"{name}.parquet"), columns=ENVELOPE)
        runs[name] = [sys.executable, "-c", script]
    for name, command in runs.items():
        code, wall, cpu, peak = measure(command)
        written = sum(f.stat().st_size for f in scratch.glob(f"{name}*/**/*.parquet"))
        written += sum(f.stat().st_size for f in scratch.glob(f"{name}.parquet"))
        print(
            f"{name}: exit code {code}, {wall:.2f} s wall, {cpu:.2f} CPU-s, {size / cpu:.0f} MB per CPU-second, "
            f"{peak:.0f} MB anonymous, {written / 1e6:.0f} MB written"
        )
        if name in scripts and code == 0:
            print(f"  {same_values(scratch / f'{name}.parquet', paths)}")


if __name__ == "__main__":
    main(*map(pathlib.Path, sys.argv[1:4]))
