/** What tests of Weft need of cudf's inner side. */
package ai.rapids.cudf;
