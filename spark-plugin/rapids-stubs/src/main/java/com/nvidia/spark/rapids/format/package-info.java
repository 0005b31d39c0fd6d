/** The metadata of spark-rapids' tables; see {@link com.nvidia.spark.rapids}. */
package com.nvidia.spark.rapids.format;
