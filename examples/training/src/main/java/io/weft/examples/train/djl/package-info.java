/**
 * Models run by DJL (Deep Java Library) on its PyTorch engine. Start at {@code DjlModels}, which
 * creates them, and {@code DjlClassifier}. Parameters, batches and gradients are PyTorch tensors
 * over memory that Weft or the trainer owns, without copies.
 *
 * <p>A model is for one thread. Several models may run in one JVM.
 */
package io.weft.examples.train.djl;
