/**
 * The plugin that {@code spark.plugins=io.weft.spark.WeftPlugin} starts on the driver and on every
 * executor. At start, the driver side decides whether Weft serves the application and configures
 * Spark for it. Package {@code driver} has the rest of the driver side, {@code executor} the
 * executor side, and {@code message} the messages between them.
 */
package io.weft.spark;
