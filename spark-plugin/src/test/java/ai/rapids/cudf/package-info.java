/** Access of Weft's tests to package-private parts of cudf. */
package ai.rapids.cudf;
