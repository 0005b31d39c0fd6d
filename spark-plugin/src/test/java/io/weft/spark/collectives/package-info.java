/** Tests of the communicators for barrier tasks, with the tasks in this JVM. */
package io.weft.spark.collectives;
