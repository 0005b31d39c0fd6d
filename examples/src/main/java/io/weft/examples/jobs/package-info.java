/**
 * What sides are asked to do: open tables, run a query or a job, measure, count what the executors
 * moved. Tasks run in a side's driver on its one task thread; their results are plain data.
 */
package io.weft.examples.jobs;
