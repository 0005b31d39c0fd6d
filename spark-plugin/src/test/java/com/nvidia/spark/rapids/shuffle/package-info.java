/**
 * Fakes of spark-rapids' client and server for the tests of Weft's transport. These classes replace
 * the stubs with the same names. Tables are bytes, messages are lists of numbers.
 */
package com.nvidia.spark.rapids.shuffle;
