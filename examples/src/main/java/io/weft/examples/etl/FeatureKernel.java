package io.weft.examples.etl;

import io.weft.spark.gpu.jcuda.JcudaColumn;
import io.weft.spark.gpu.jcuda.JcudaFunction;
import io.weft.spark.gpu.jcuda.JcudaTable;
import io.weft.spark.gpu.jcuda.JcudaWork;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import jcuda.CudaException;
import jcuda.Pointer;
import jcuda.Sizeof;
import jcuda.driver.CUdeviceptr;
import jcuda.driver.CUfunction;
import jcuda.driver.CUresult;
import jcuda.driver.JCudaDriver;

/**
 * Makes the features of a training with a kernel of this program, {@code features.cu}: (value -
 * mean) * scale of each column, and 0 for null. The batch has the columns of doubles, then a label;
 * the result has a tensor of floats, then the label.
 *
 * @param features number of columns of doubles
 * @param ptx the kernel
 */
public record FeatureKernel(int features, double mean, double scale, String ptx)
    implements JcudaFunction {
  private static final int THREADS = 256;
  private static final int MOST_BLOCKS = 1024;

  /** Creates the function with the kernel in this jar. */
  public static FeatureKernel of(int features, double mean, double scale) {
    try (InputStream in = FeatureKernel.class.getResourceAsStream("features.ptx")) {
      String ptx = new String(in.readAllBytes(), StandardCharsets.UTF_8);
      return new FeatureKernel(features, mean, scale, ptx);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  @Override
  public JcudaTable apply(JcudaTable batch, JcudaWork work) {
    int rows = batch.rows();
    long bytes = (long) rows * features * Sizeof.FLOAT;
    CUdeviceptr tensors = work.take(bytes);
    if (rows > 0) {
      CUfunction kernel = work.kernel(ptx, "features");
      for (int c = 0; c < features; c++) {
        launch(kernel, tensors, c, batch, work);
      }
    }
    return JcudaTable.of(rows, JcudaColumn.of(tensors, bytes), batch.column(features));
  }

  private void launch(
      CUfunction kernel, CUdeviceptr tensors, int column, JcudaTable batch, JcudaWork work) {
    JcudaColumn from = batch.column(column);
    CUdeviceptr validity = from.validity() == null ? new CUdeviceptr() : from.validity();
    Pointer parameters =
        Pointer.to(
            Pointer.to(tensors),
            Pointer.to(from.data()),
            Pointer.to(validity),
            Pointer.to(new long[] {batch.rows()}),
            Pointer.to(new long[] {features}),
            Pointer.to(new long[] {column}),
            Pointer.to(new double[] {mean}),
            Pointer.to(new double[] {scale}));
    int blocks = Math.min(MOST_BLOCKS, (batch.rows() + THREADS - 1) / THREADS);
    int result =
        JCudaDriver.cuLaunchKernel(
            kernel, blocks, 1, 1, THREADS, 1, 1, 0, work.stream(), parameters, null);
    if (result != CUresult.CUDA_SUCCESS) {
      throw new CudaException(CUresult.stringFor(result));
    }
  }

  /** For plans, without the kernel. */
  @Override
  public String toString() {
    return "features(%d, %s, %s)".formatted(features, mean, scale);
  }
}
