/**
 * Feeds as a data source: {@code df.write.format("weft")} exchanges the rows and exports them, and
 * {@code spark.read.format("weft")} lists the shards of an export. It needs no class of Weft in the
 * program, so it works from every language of Spark and from Spark Connect. Spark finds {@link
 * io.weft.spark.feed.source.WeftSource} by its short name.
 *
 * <p>All of it runs on the driver.
 */
package io.weft.spark.feed.source;
