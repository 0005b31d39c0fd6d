/** Tests of the data source, and of the Python package that reads what it saves. */
package io.weft.spark.feed.source;
