/**
 * Data-parallel training inside Spark: features by SQL, exchanged onto ranks by a Weft feed, and
 * trained where the exchange put them. Weft supplies data, collectives and the optimiser's state;
 * the model is another library's, behind {@link io.weft.examples.train.TrainingModel}, found by
 * {@link io.weft.examples.train.ModelProvider}.
 *
 * <p>A rank is one task of a barrier stage and everything of it runs on the task's thread, except
 * the all-reduces on the lane of its gradient buckets. A model owns its parameters; the trainer
 * owns buckets and optimiser and closes both.
 */
package io.weft.examples.train;
