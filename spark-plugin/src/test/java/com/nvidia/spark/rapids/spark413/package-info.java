/** Names of spark-rapids for one Spark version, with nothing behind them. */
package com.nvidia.spark.rapids.spark413;
