/**
 * From files to a trained model with a kernel of the program in between: {@link
 * io.weft.examples.etl.GpuTraining} scans Parquet, makes features on the executors' GPUs with
 * {@link io.weft.examples.etl.FeatureKernel}, and trains on a feed. The command {@code weft
 * gpu-train} runs it. All classes are for one thread.
 */
package io.weft.examples.etl;
