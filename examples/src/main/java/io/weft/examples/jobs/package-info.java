/**
 * Tasks for sides: open tables, run a query or a job, measure, and read the counters of executors.
 * Start at {@code RunQuery}, {@code ShuffleJob} and {@code ExecutorTotals}. A task runs on the
 * single task thread of a side's driver. Its result is plain data.
 */
package io.weft.examples.jobs;
