/** The rendezvous on the driver, by its calls, and the poll for lost executors. */
package io.weft.spark.rendezvous;
