/** What spark-rapids says of tables; see {@link com.nvidia.spark.rapids}. */
package com.nvidia.spark.rapids.format;
