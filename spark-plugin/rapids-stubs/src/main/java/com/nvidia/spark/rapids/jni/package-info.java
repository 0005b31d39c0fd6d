/** What spark-rapids' native code knows of threads; see {@link com.nvidia.spark.rapids}. */
package com.nvidia.spark.rapids.jni;
