/**
 * What the driver keeps and does while an application runs: the directory of peers, the last
 * reports, the answers to executors, hints to the user.
 *
 * <p>Executors are answered on Spark's message threads without ever blocking one. The garbage
 * thread belongs to the driver plugin, which stops it.
 */
package io.weft.spark.driver;
