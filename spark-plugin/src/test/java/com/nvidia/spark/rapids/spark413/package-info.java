/** Empty stand-ins for spark-rapids' classes of one Spark version. */
package com.nvidia.spark.rapids.spark413;
