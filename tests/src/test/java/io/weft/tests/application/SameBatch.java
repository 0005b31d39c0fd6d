package io.weft.tests.application;

import io.weft.spark.gpu.jcuda.JcudaFunction;
import io.weft.spark.gpu.jcuda.JcudaTable;
import io.weft.spark.gpu.jcuda.JcudaWork;

/** A function with JCuda that returns its batch. */
public record SameBatch() implements JcudaFunction {
  @Override
  public JcudaTable apply(JcudaTable batch, JcudaWork work) {
    return batch;
  }
}
