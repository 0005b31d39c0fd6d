package com.nvidia.spark.rapids.jni;

/** Which thread works for which task. */
public class RmmSpark {
  public static void removeAllCurrentThreadAssociation() {}
}
