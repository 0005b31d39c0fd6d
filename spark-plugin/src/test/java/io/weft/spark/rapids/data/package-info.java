/** Tests of data lanes. */
package io.weft.spark.rapids.data;
