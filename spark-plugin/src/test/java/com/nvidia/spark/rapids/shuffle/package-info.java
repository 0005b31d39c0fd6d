/**
 * What spark-rapids' client and server do with a transport, written for the tests of Weft's: these
 * classes take the place of the stubs of the same names. Tables are bytes, messages are lists of
 * numbers.
 */
package com.nvidia.spark.rapids.shuffle;
