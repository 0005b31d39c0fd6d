/** Tests of messages. */
package io.weft.spark.rapids.control;
