//! One chart's axes, lines, bars and legend.

use std::ops::Range;

use plotters::coord::ranged1d::{AsRangedCoord, ValueFormatter};
use plotters::prelude::*;

use crate::failure::{Context, Result};

/// Okabe and Ito's colours, which people with any colour vision can tell apart.
const COLOURS: [RGBColor; 6] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
];
const SIZE: (u32, u32) = (800, 480);
const FONT: &str = "sans-serif";

pub fn colour(index: usize) -> RGBColor {
    COLOURS[index % COLOURS.len()]
}

#[derive(Clone, Copy, PartialEq)]
pub enum Mark {
    Line,
    Dashed,
    Dots,
    /// From 0 to y, x the middle.
    Bars,
}

pub struct Series {
    pub name: String,
    pub colour: RGBColor,
    pub mark: Mark,
    pub points: Vec<(f64, f64)>,
}

pub struct Chart<'a> {
    pub title: &'a str,
    pub x: &'a str,
    pub y: &'a str,
    pub x_label: &'a dyn Fn(f64) -> String,
    pub x_labels: usize,
}

impl Chart<'_> {
    /// The chart's SVG text. The same numbers give the same bytes.
    pub fn draw<X, Y>(&self, x: X, y: Y, series: &[Series]) -> Result<String>
    where
        X: AsRangedCoord<Value = f64>,
        Y: AsRangedCoord<Value = f64>,
        X::CoordDescType: ValueFormatter<f64>,
        Y::CoordDescType: ValueFormatter<f64>,
    {
        let mut svg = String::new();
        self.draw_into(&mut svg, x, y, series).context(|| self.title.to_string())?;
        Ok(svg)
    }

    fn draw_into<X, Y>(
        &self,
        svg: &mut String,
        x: X,
        y: Y,
        series: &[Series],
    ) -> std::result::Result<(), Box<dyn std::error::Error>>
    where
        X: AsRangedCoord<Value = f64>,
        Y: AsRangedCoord<Value = f64>,
        X::CoordDescType: ValueFormatter<f64>,
        Y::CoordDescType: ValueFormatter<f64>,
    {
        let root = SVGBackend::with_string(svg, SIZE).into_drawing_area();
        root.fill(&WHITE)?;
        let mut chart = ChartBuilder::on(&root)
            .caption(self.title, (FONT, 20))
            .margin(12)
            .x_label_area_size(48)
            .y_label_area_size(64)
            .build_cartesian_2d(x, y)?;
        chart
            .configure_mesh()
            .x_desc(self.x)
            .y_desc(self.y)
            .x_labels(self.x_labels)
            .x_label_formatter(&|x| (self.x_label)(*x))
            .y_label_formatter(&|y| format!("{}", (y * 1000.0).round() / 1000.0))
            .light_line_style(TRANSPARENT)
            .axis_desc_style((FONT, 15))
            .label_style((FONT, 13))
            .draw()?;
        for one in series {
            let style = one.colour.stroke_width(2);
            let points = one.points.iter().copied();
            let drawn = match one.mark {
                Mark::Line => chart.draw_series(LineSeries::new(points, style).point_size(3))?,
                Mark::Dashed => chart.draw_series(DashedLineSeries::new(points, 6, 4, style))?,
                Mark::Dots => chart.draw_series(points.map(|point| Circle::new(point, 4, one.colour.filled())))?,
                Mark::Bars => chart.draw_series(
                    points.map(|(x, y)| Rectangle::new([(x - 0.4, 0.0), (x + 0.4, y)], one.colour.filled())),
                )?,
            };
            if one.name.is_empty() {
                continue;
            }
            let (dashed, colour) = (one.mark == Mark::Dashed, one.colour);
            drawn.label(one.name.as_str()).legend(move |(x, y)| {
                let end = if dashed { x + 8 } else { x + 20 };
                PathElement::new(vec![(x, y), (end, y)], colour.stroke_width(3))
            });
        }
        chart
            .configure_series_labels()
            .position(SeriesLabelPosition::UpperLeft)
            .background_style(WHITE.mix(0.85))
            .border_style(BLACK.mix(0.3))
            .label_font((FONT, 13))
            .draw()?;
        root.present()?;
        Ok(())
    }
}

/// From 0 to the highest point, and room for the legend above it.
pub fn from_zero(series: &[Series]) -> Range<f64> {
    0.0..1.45 * series.iter().flat_map(|one| &one.points).map(|point| point.1).fold(0.0, f64::max)
}
