/**
 * Data-parallel training inside Spark. SQL computes the features, a Weft feed hands them to ranks,
 * and the ranks train on them in place. Weft supplies data, collectives and the state of the
 * optimiser. The model belongs to another library behind {@link
 * io.weft.examples.train.TrainingModel}; {@link io.weft.examples.train.ModelProvider} finds it.
 *
 * <p>A rank is one task of a barrier stage. All its code runs on the task's thread, except the
 * all-reduces on the lane of its gradient buckets. A model owns its parameters. The trainer owns
 * buckets and optimiser and closes both.
 */
package io.weft.examples.train;
