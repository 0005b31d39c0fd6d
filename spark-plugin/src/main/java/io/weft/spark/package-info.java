/**
 * The plugin: what {@code spark.plugins=io.weft.spark.WeftPlugin} starts on the driver and on every
 * executor. The driver side decides at start whether Weft serves the application, sets Spark up for
 * it and tells executors so; what it does afterwards is in {@code driver}, the other side in {@code
 * executor}, what the two say to each other in {@code message}.
 */
package io.weft.spark;
