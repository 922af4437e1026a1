

def test_lda_without_any_direction_says_so():
    X = np.array([[1.3e-32, -1.3e-32], [6e-42, 1e-42], [-5e-40, 4e-40], [13.0, 9.5]])
    with pytest.raises(InvalidInputError, match="The covariance within classes is singular"):
        LDA().fit(X, [1, 1, 1, 0])
