/**
 * Known objects as bytes, without Java's serialization: {@link io.weft.spark.values.ValueWriter}
 * and {@link io.weft.spark.values.ValueReader}.
 *
 * <p>An object is the code of its class in a byte, and then its contents. All numbers are
 * little-endian. A length is one byte below 255, or else the byte 255 and an int.
 *
 * <table>
 *   <caption>Contents by code</caption>
 *   <tr><td>0</td><td>null</td></tr>
 *   <tr><td>1, 2</td><td>text: length in characters, then one or two bytes for each</td></tr>
 *   <tr><td>3-5</td><td>Long, Integer, Double</td></tr>
 *   <tr><td>6</td><td>row with a schema: a byte for the schema, length, fields. The chunk's first
 *       use of a schema adds 128 to the byte, and the schema as an int length and Java's
 *       serialization</td></tr>
 *   <tr><td>others</td><td>{@link io.weft.spark.values.JavaTypes}, {@link
 *       io.weft.spark.values.ScalaTypes}</td></tr>
 * </table>
 *
 * <p>Writers and readers belong to one task thread. The tables of types are constants.
 */
package io.weft.spark.values;
