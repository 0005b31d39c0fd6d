package io.weft.examples.bench.shuffle;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import java.io.ByteArrayInputStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import javax.xml.parsers.DocumentBuilderFactory;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.w3c.dom.Document;
import org.w3c.dom.Element;
import org.w3c.dom.NodeList;

class ShuffleChartTest {
  private static Document chart() throws Exception {
    String svg = new ShuffleChart(ShuffleReports.example()).toSvg();
    return DocumentBuilderFactory.newInstance()
        .newDocumentBuilder()
        .parse(new ByteArrayInputStream(svg.getBytes(StandardCharsets.UTF_8)));
  }

  private static List<Element> elements(Document document, String name) {
    NodeList nodes = document.getElementsByTagName(name);
    List<Element> elements = new ArrayList<>();
    for (int i = 0; i < nodes.getLength(); i++) {
      elements.add((Element) nodes.item(i));
    }
    return elements;
  }

  private static double number(Element element, String attribute) {
    return Double.parseDouble(element.getAttribute(attribute));
  }

  @Test
  void isXmlWithABarForEachSide() throws Exception {
    List<Element> bars =
        elements(chart(), "rect").stream().filter(rect -> number(rect, "height") == 16).toList();
    assertThat(bars).hasSize(5 * 3 + 2 * 2);
  }

  @Test
  void barsAreAsLongAsTheirTimes() throws Exception {
    List<Element> bars =
        elements(chart(), "rect").stream().filter(rect -> number(rect, "height") == 16).toList();
    double spark = number(bars.get(0), "width");
    double weft = number(bars.get(1), "width");
    assertThat(spark / weft).isCloseTo(3.2 / 0.71, within(0.05));
  }

  @Test
  void allElementsAreInsideThePicture() throws Exception {
    Document chart = chart();
    double width = number(chart.getDocumentElement(), "width");
    double height = number(chart.getDocumentElement(), "height");
    for (Element rect : elements(chart, "rect").subList(1, elements(chart, "rect").size())) {
      assertThat(number(rect, "x") + number(rect, "width")).isBetween(0.0, width);
      assertThat(number(rect, "y") + number(rect, "height")).isBetween(0.0, height);
    }
    for (Element text : elements(chart, "text")) {
      assertThat(number(text, "x")).isBetween(0.0, width);
      assertThat(number(text, "y")).isBetween(0.0, height);
    }
  }

  @ParameterizedTest
  @CsvSource({"5, 1", "5.1, 2", "0.9, 0.2", "26, 10", "0.05, 0.01", "49, 10"})
  void marksAreRound(double longest, double step) {
    assertThat(ShuffleChart.tick(longest)).isCloseTo(step, within(step * 1e-9));
  }
}
