/**
 * Programs of ranks in barrier stages, checked against Spark's own results: {@link
 * io.weft.examples.ranks.HaloExchange} and {@link io.weft.examples.ranks.SampleSort}. The command
 * {@code weft ranks} runs both. All classes are for one thread.
 */
package io.weft.examples.ranks;
