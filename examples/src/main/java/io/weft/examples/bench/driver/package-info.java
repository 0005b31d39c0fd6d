/**
 * {@code weft bench driver}: how many executors one driver serves. Fake executors in this process
 * send Weft's real messages by Spark's RPC to a real driver in another process. Start at {@code
 * DriverBench} and {@code FakeExecutors}.
 *
 * <p>Threads: one for each fake executor, at most 1,000, named {@code weft-fake-executor-<n>}.
 * {@code FakeExecutors} owns and stops them.
 */
package io.weft.examples.bench.driver;
