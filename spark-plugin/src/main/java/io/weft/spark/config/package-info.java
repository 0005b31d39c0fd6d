/**
 * The {@code spark.weft.*} settings: type, default, range and documentation. {@link
 * io.weft.spark.config.WeftSettings} declares each of them once, those of memory in {@link
 * io.weft.spark.config.MemorySettings}, {@link io.weft.spark.config.SettingsCheck} checks them when
 * the application starts, and {@link io.weft.spark.config.Activation} decides whether Weft serves
 * the application. {@link io.weft.spark.config.NoRepeat} marks what only another setting can mend.
 *
 * <p>Immutable values, without threads or resources.
 */
package io.weft.spark.config;
