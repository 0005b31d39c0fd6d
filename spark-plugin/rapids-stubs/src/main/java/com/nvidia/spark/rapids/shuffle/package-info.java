/** The shuffle transport of spark-rapids; see {@link com.nvidia.spark.rapids}. */
package com.nvidia.spark.rapids.shuffle;
