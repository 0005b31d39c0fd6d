/** Tests of the transfers of an application. */
package io.weft.spark.transfers;
