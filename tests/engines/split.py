"""palog by input split under Spark: each task exports its share of many logs into one dataset."""

import json
import subprocess

LOGS = 10_000
SPLITS = 8


def write(directory):
    """Small logs of three events each."""
    directory.mkdir()
    paths = []
    for number in range(LOGS):
        log, lines = f"log-{number:05}", []
        for seq, (kind, data) in enumerate(
            [
                ("log.opened", {"spec": "1.0-draft", "session": str(number), "agent": {"name": "example"}}),
                ("message.added", {"role": "user", "parts": [{"type": "text", "text": f"question {number}"}]}),
                ("log.closed", {"how": "complete"}),
            ]
        ):
            time = f"2026-11-{1 + number % 28:02}T12:00:0{seq}Z"
            event = {"palog": 1, "log": log, "seq": seq, "id": f"{log}-{seq}", "type": kind, "time": time}
            lines.append(json.dumps(event | {"actor": {"kind": "harness"}, "data": data}) + "\n")
        path = directory / f"{log}.palog.jsonl"
        path.write_text("".join(lines))
        paths.append(str(path))
    return paths


def export(palog, dataset):
    """What a task does with its share: one process, one new file in each table."""

    def of(paths):
        command = [palog, "export", *paths, "--to", "parquet", "-o", dataset, "--format", "json"]
        yield json.loads(subprocess.run(command, check=True, capture_output=True).stdout)["added"]

    return of


def check(spark, palog, scratch, tell):
    scratch.mkdir()
    paths, dataset = write(scratch / "logs"), scratch / "dataset"
    share = spark.sparkContext.parallelize(paths, SPLITS)
    tell("each log is exported once", share.mapPartitions(export(str(palog), str(dataset))).sum(), LOGS)
    tell("a second run finds nothing new", share.mapPartitions(export(str(palog), str(dataset))).sum(), 0)
    events, sessions = (spark.read.parquet(f"{dataset}/{table}") for table in ("events", "sessions"))
    tell("rows", (events.count(), sessions.count(), sessions.select("log").distinct().count()), (3 * LOGS, LOGS, LOGS))
    tell("verdicts", [tuple(row) for row in sessions.groupBy("verdict").count().collect()], [("closed", LOGS)])
    tell("files", len(list((dataset / "events").glob("*.parquet"))), SPLITS)
