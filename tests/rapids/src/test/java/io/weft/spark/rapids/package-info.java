/** What Weft compiles against, compared with the real classes. */
package io.weft.spark.rapids;
