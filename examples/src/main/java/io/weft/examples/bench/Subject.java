package io.weft.examples.bench;

import io.weft.examples.jobs.Fingerprint;
import io.weft.examples.jobs.JobCost;
import io.weft.examples.jobs.QueryFingerprint;
import io.weft.examples.jobs.QueryJob;
import io.weft.examples.jobs.ShuffleJob;
import io.weft.examples.side.SideTask;
import io.weft.examples.tpch.TpchQuery;
import java.util.Locale;
import java.util.Optional;

/**
 * Something that is measured on every side.
 *
 * @param id its name
 * @param title what it is
 * @param base the job without the shuffle; empty for a query
 * @param job the whole job
 * @param check what it comes to, to be equal on all sides
 * @param rows shuffled; 0 for a query
 * @param dataBytes in those rows; 0 for a query
 */
record Subject(
    String id,
    String title,
    Optional<SideTask<JobCost>> base,
    SideTask<JobCost> job,
    SideTask<String> check,
    long rows,
    long dataBytes) {

  static Subject shuffle(Workload workload, ShuffleJob job, long rows, long dataBytes) {
    return new Subject(
        workload.id(),
        workload.title(),
        Optional.of(job.withoutShuffle()),
        job,
        new Fingerprint(job),
        rows,
        dataBytes);
  }

  static Subject query(TpchQuery query) {
    return new Subject(
        "tpch-" + query.name().toLowerCase(Locale.ROOT),
        "TPC-H " + query,
        Optional.empty(),
        new QueryJob(query.text()),
        new QueryFingerprint(query.text()),
        0,
        0);
  }
}
