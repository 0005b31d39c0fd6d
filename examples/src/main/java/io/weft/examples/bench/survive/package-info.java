/**
 * Measures what the death of an executor costs a job. Start with {@link
 * io.weft.examples.bench.survive.SurviveBenchCommand}.
 *
 * <p>Each side is a cluster in processes of its own, started and stopped by {@link
 * io.weft.examples.bench.survive.SurviveBench}.
 */
package io.weft.examples.bench.survive;
