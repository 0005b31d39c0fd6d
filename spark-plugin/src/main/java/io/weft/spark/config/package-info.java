/**
 * Every {@code spark.weft.*} setting: its type, default, range and documentation, declared once in
 * {@link io.weft.spark.config.WeftSettings} and checked when the application starts.
 *
 * <p>Immutable values; no threads, nothing to free.
 */
package io.weft.spark.config;
